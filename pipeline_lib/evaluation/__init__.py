"""How good, how small and how fast: metrics, significance, the scores of a task, timings."""
