"""The density: an exponential-family density per node, learned round by round, and their mixture."""
