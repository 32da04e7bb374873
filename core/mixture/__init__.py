"""How much each node's density counts: one rule a file."""
