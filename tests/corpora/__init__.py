"""Tests of ``pipeline_lib.corpora``."""
