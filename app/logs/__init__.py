"""The log: one pipeline for the lines of the service and of all its libraries."""
