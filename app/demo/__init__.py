"""Made-up streams to look at."""
