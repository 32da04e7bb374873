"""A store in memory."""

from app.storage.memory.store import MemoryStore

__all__ = ["MemoryStore"]
