"""Samples and labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from itan_client.answers.samples import Feedback, Observed
from itan_client.inputs import Ids, Samples, Timestamps, ids_of, moment_of, rows_of, times_of
from itan_client.request import JSON, Page, Request, encode, flag, then, without_none

Label = Mapping[str, Any]


def observe(
    stream: str,
    samples: Samples,
    ids: Ids = "auto",
    timestamps: Timestamps | None = None,
    *,
    explain: bool = False,
    calendar: Sequence[str | float] | None = None,
    timezone: str = "UTC",
) -> Request[Observed]:
    """Post samples (None or NaN = missing) and get their scores and decisions; the service learns them.

    Samples get ids of their own, so that the request can be repeated and counts once; with ids=None they have none, and
    the request is not repeated once it may have arrived. The index of a DataFrame gives the timestamps.
    With `explain`, flagged samples come with what each feature adds to the score, and the value expected instead.
    A stream that the samples create gets the periods of `calendar`, "day", "week" or seconds; a stream with a
    calendar needs timestamps, None where the time is not known.

    Raises ValueError for an infinity: JSON has none, and it would look like a missing value.
    """
    rows = rows_of(samples)
    params = {"stream": stream, "explain": flag(explain)}
    if calendar is not None:
        params |= {"calendar": ",".join(map(str, calendar)), "timezone": timezone}
    return _observation(params, rows, ids_of(ids, len(rows)), times_of(samples, timestamps))


def observe_in_parts(
    stream: str,
    samples: Samples,
    ids: Ids = "auto",
    timestamps: Timestamps | None = None,
    *,
    size: int = 1000,
    explain: bool = False,
) -> Request[Page[Observed]]:
    """Post samples of any number, so many at a time, and iterate over the answers; scores are those of one request.

    A part is sent when its answer is asked for. Whoever stops early has sent only what was answered so far.
    """
    rows, times = rows_of(samples), times_of(samples, timestamps)
    known = ids_of(ids, len(rows))
    params = {"stream": stream, "explain": flag(explain)}

    def part(begin: int) -> Request[Page[Observed]]:
        end = begin + size
        request = _observation(params, rows[begin:end], known and known[begin:end], times and times[begin:end])
        # the next part is written only when this one is answered
        return then(request, lambda: part(end) if end < len(rows) else None)

    return part(0)


def _observation(
    params: dict[str, str], rows: list[Any], ids: list[str | None] | None, times: list[float | str | None] | None
) -> Request[Observed]:
    body = encode(without_none(samples=rows, ids=ids, timestamps=times))
    return Request("POST", "/observe", _OBSERVED, params, body, JSON, ids is not None and all(ids))


def score(
    stream: str, samples: Samples, timestamps: Timestamps | None = None, *, explain: bool = False
) -> Request[Observed]:
    """Get the scores and decisions of samples that the service does not learn."""
    params = {"stream": stream, "learn": "false", "explain": flag(explain)}
    body = encode(without_none(samples=rows_of(samples), timestamps=times_of(samples, timestamps)))
    return Request("POST", "/observe", _OBSERVED, params, body, JSON)


def feedback(
    stream: str, labels: Sequence[Label] = (), *, ranges: Sequence[Label] = (), dry_run: bool = False
) -> Request[Feedback]:
    """Send labels, each {"seq" or "id": which sample, "anomaly": True, False, or None to withdraw}.

    Ranges are {"from": time, "to": time, "anomaly": ...}: they label the flagged samples of a time, and with
    {"only": "all"} all of them.
    """
    params = {"stream": stream, "dry_run": flag(dry_run)}
    body = without_none(labels=list(labels) or None, ranges=[_timed(one) for one in ranges] or None)
    return Request("POST", "/feedback", _FEEDBACK, params, encode(body), JSON)


def _timed(range_: Label) -> dict[str, Any]:
    """Give a range with its times as the service takes them."""
    return {name: moment_of(value) if name in ("from", "to") else value for name, value in range_.items()}


_OBSERVED = msgspec.json.Decoder(Observed).decode
_FEEDBACK = msgspec.json.Decoder(Feedback).decode
