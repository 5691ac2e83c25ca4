"""What all other packages build on: errors, files, hashing, devices, progress."""
