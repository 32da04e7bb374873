"""How a tree grows: by the paper's schedule, or by evidence."""
