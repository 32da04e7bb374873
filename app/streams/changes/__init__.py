"""What changes a stream: samples, labels, creation, reset and import."""
