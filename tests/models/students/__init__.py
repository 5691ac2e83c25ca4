"""Tests of pipeline_lib.models.students."""
