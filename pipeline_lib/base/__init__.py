"""What knows nothing of machine learning: errors, files, hashing, layout, devices, progress."""
