"""What everything stands on: errors, files, hashing, devices, progress."""
