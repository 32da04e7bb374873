"""A stream's log: its events, how to find samples in it, and how far back it is kept."""
