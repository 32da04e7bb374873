"""What honest requests wait for while somebody does their worst."""
