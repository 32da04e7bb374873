"""Why records could not be forwarded, and what became of those that were."""

import math


class NotAWorker(Exception):
    """A request that is not signed by a worker with the same secret, is too old, or has come before."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not signed as ITAN_WORKER_SECRET asks for: {reason}")


class HolderUnreachable(Exception):
    """The worker that holds a stream does not answer; after `seconds` its lease may have ended."""

    def __init__(self, address: str, reason: str, seconds: float) -> None:
        super().__init__(f"the worker at {address}, which holds the stream, does not answer: {reason}")
        self.address, self.reason, self.seconds = address, reason, max(1, math.ceil(seconds))


class RefusedByHolder(Exception):
    """What the holder of its stream has said of a record; `problem` is the document, packed."""

    def __init__(self, code: str, problem: bytes) -> None:
        super().__init__(code)
        self.code, self.problem = code, problem
