"""What is read of a stream: nothing here changes it."""
