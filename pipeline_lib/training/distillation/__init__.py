"""Distillation: rows of params.yaml resolved into plans and training runs."""
