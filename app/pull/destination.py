"""The service that the samples go to. It also knows how far each stream has come, so nothing else is kept."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from app.pull.config import PullConfig
from app.pull.errors import Permanent, Temporary, Unfit
from app.pull.rows import Sample
from itan_client import ApiError, Client, RefusedRecord, ServiceUnreachable

MOST_RECORDS: Final = 1000
TOO_LARGE: Final = {"too_many", "body_too_large"}
NOT_ALLOWED: Final = {401, 403}
KNOWN: Final = "id_conflict"
"""A sample of this time was sent before, with the values that Prometheus had then."""


@dataclass
class Sent:
    """What became of the samples."""

    taken: int = 0
    flagged: int = 0
    known: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class Destination:
    """Sends samples in batches, and asks how far streams have come. `refused` gets each new reason of a refusal."""

    def __init__(self, client: Client, config: PullConfig, refused: Callable[[str], object]) -> None:
        self._client, self._config, self._refused = client, config, refused
        self.sent = Sent()

    def place_of(self, stream: str) -> float | None:
        """Give the time of the newest sample of a stream; None if there is none. Create it if there is a config for it.

        Raises Unfit if the stream has other features, Temporary or Permanent.
        """
        with refusals():
            try:
                found = self._client.get(stream)
            except ApiError as error:
                if error.status != 404:
                    raise
                self._create(stream)
                return None
        features = [feature["name"] for feature in found.config.get("features") or []]
        if set(features) != set(self._config.names):
            raise Unfit(f"stream {stream!r} has the features {features}, but the queries are {[*self._config.names]}")
        return found.newest_timestamp

    def _create(self, stream: str) -> None:
        if (config := self._config.stream_config) is None:
            return
        try:
            self._client.create(stream, config)
        except ApiError as error:
            if error.code == "quota_exceeded":
                raise Unfit(f"stream {stream!r} cannot be created: {error}") from None
            raise

    def send(self, samples: Sequence[Sample]) -> None:
        """Send samples in the order of time; again after a failure, each counts once. Raises Temporary or Permanent."""
        names = self._config.names
        records = [
            {"stream": stream, "sample": dict(zip(names, values, strict=True)), "id": str(time), "timestamp": time}
            for time, stream, values in samples
        ]
        self._send(records)

    def _send(self, records: Sequence[Mapping[str, Any]]) -> None:
        try:
            with refusals():
                answer = self._client.ingest(records, answer="flagged")
        except TooLarge:
            if len(records) == 1:
                raise Permanent("the service takes no more than one record at a time, and refuses one") from None
            middle = len(records) // 2
            self._send(records[:middle])
            self._send(records[middle:])
        except NothingTaken as error:
            self._note(error.problems)
        else:
            self.sent.taken += answer.taken
            self.sent.flagged += answer.flagged
            self._note(answer.problems or [])

    def _note(self, problems: Sequence[RefusedRecord]) -> None:
        for problem in problems:
            if problem.code == KNOWN:
                self.sent.known += 1
                continue
            self.sent.refused[problem.code] += 1
            self._refused(f"stream {problem.stream!r} refuses samples: {problem.detail} [{problem.code}]")


class TooLarge(Exception):
    """The service takes less at once."""


class NothingTaken(Exception):
    """Each record was refused by itself."""

    def __init__(self, problems: Sequence[RefusedRecord]) -> None:
        super().__init__()
        self.problems = problems


@contextmanager
def refusals() -> Iterator[None]:
    """Say of each refusal and failure of the service whether it can pass."""
    try:
        yield
    except ServiceUnreachable as error:
        raise Temporary(str(error)) from None
    except ApiError as error:
        if error.status == 429 or error.status >= 500:
            raise Temporary(f"the service answers: {error}", error.retry_after_seconds or 0.0) from None
        if error.code == "nothing_taken":
            raise NothingTaken(error.refused_records) from None
        if error.code in TOO_LARGE:
            raise TooLarge from None
        raise Permanent(f"the service refuses: {error}") from None
