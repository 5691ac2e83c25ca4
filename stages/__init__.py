"""The stages of the pipeline, a module each: in the repository below stages/, in the wheel here."""
