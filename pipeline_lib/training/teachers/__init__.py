"""Fine-tuning a teacher on one task, or refining it on several."""
