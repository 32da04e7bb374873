"""A store in Redis or Valkey."""

from app.storage.redis.store import RedisStore

__all__ = ["RedisStore"]
