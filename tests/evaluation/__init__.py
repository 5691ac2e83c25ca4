"""Tests of ``pipeline_lib.evaluation``."""
