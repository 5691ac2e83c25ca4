"""What is learned from: tasks, Wikipedia's sentences, transfer sets."""
