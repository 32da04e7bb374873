"""Reads a CSV file as samples, and says what it is: separator, columns, labels, times, and what cannot be read."""
