"""The stages of the pipeline, a module each: in the repository below stages/, in the wheel here."""

from pipeline_lib.base.interrupts import end_quietly

# Before a stage imports torch, which takes seconds.
end_quietly()
