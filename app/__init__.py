"""The service: HTTP, streams, stores, command line."""
