"""What a fleet of streams takes from workers and store: the constants of its sizing, measured on this machine."""
