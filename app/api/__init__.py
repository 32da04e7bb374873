"""The HTTP interface, one file a resource."""
