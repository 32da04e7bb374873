"""Sends files and pipes of records to a service: cut into records, then into requests of bounded size."""
