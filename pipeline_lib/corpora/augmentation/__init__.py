"""Transfer sets: the rules that make synthetic examples."""
