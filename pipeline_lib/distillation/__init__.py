"""Plans: rows of params.yaml made into trainings."""
