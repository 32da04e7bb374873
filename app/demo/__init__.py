"""A made-up stream to look at."""
