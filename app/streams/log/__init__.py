"""What a stream's log says, and how far back it is kept."""
