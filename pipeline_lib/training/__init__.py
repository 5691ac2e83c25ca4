"""Every training, of teachers, students and encoders, and the one loop that runs them."""
