"""Turns the errors of redis-py into the store's."""

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as DisconnectedError

from app.storage.errors import Cause, StoreCorrupt, StoreError, StoreUnavailable

# The first words of errors that pass by themselves.
PASSING_ERRORS = frozenset(
    (
        "ASK",
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "MOVED",
        "NOAUTH",
        "NOPERM",
        "NOREPLICAS",
        "OOM",
        "READONLY",
        "TRYAGAIN",
        "UNKILLABLE",
    )
)
# Why the server refuses writes, where the word says it.
CAUSES = {"OOM": Cause.FULL, "READONLY": Cause.READ_ONLY, "MISCONF": Cause.FAILED}


def wrap_error(error: Exception) -> Exception:
    """Turn redis-py's errors into the store's."""
    if not isinstance(error, (RedisError, RedisClusterException, OSError, TimeoutError)):
        return error
    if not isinstance(error, ResponseError) or isinstance(error, DisconnectedError):
        return StoreUnavailable(f"Redis: {error or type(error).__name__}")
    code = error.status_code or str(error).partition(" ")[0]
    if code in PASSING_ERRORS:
        return StoreUnavailable(f"Redis: {code}: {error}", CAUSES.get(code, Cause.UNREACHABLE))
    if code == "WRONGTYPE":
        return StoreCorrupt(None, f"Redis: {error}")
    return StoreError(f"Redis: {error}")


def wrap_refusal(error: Exception) -> Exception:
    """Turn redis-py's errors at the start into the store's; wrong passwords and wrong kinds of servers do not pass."""
    cause: BaseException | None = error
    while cause is not None:  # the client of a Cluster wraps the errors of its nodes
        if isinstance(cause, (AuthenticationError, AuthorizationError, NoPermissionError)):
            return StoreError(f"Redis refuses the user or the password: {cause}")
        if isinstance(cause, ResponseError) and "cluster support disabled" in str(cause):
            return StoreError("Redis: this is no node of a Cluster: the URL of a single server is redis://host:port")
        cause = cause.__cause__ or cause.__context__
    return wrap_error(error)
