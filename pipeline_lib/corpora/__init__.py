"""What is learned from: labelled tasks, Wikipedia's sentences, transfer sets."""
