"""Tests of ``pipeline_lib.report``."""
