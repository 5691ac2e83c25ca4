"""What a run will do, before it does it, and how long it will take."""
