"""What the service answers, as structs: one file for each kind of resource."""
