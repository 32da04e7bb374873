"""The formats of agents: each file makes records of bodies, as trees of names and values."""
