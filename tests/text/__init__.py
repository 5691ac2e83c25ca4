"""Tests of pipeline_lib.text."""
