"""Sources: how the records of an agent become samples of streams."""
