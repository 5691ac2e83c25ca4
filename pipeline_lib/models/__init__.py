"""Everything with a forward pass: built, loaded, saved and served."""
