"""Tests of pipeline_lib.students."""
