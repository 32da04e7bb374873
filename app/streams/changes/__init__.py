"""What changes a stream: samples, labels, and its life from creation to deletion."""
