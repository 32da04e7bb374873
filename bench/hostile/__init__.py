"""How long honest requests wait beside hostile clients."""
