"""The answer to many records, of which some were taken and some refused."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from msgspec import UNSET
from starlette.responses import Response

from app.api.incidents import incident_events, incident_ids
from app.api.problems import count_problem, headers_of, problem_of, respond
from app.api.refusals import NothingTaken
from app.api.routing import answer
from app.api.schemas.ingest import IngestAnswer, IngestProblem, RefusedRecord
from app.api.schemas.service import Problem, Wrong
from app.metrics import Metrics
from app.streams.batches.answer import COLUMNS
from app.streams.changes.ingest import Outcomes, Refusal
from app.streams.errors import MOST_NAMED, Refused
from app.workers.errors import RefusedByHolder

PASSING: Final = {
    *("rate_limited", "store_unavailable", "stream_elsewhere", "stream_moved", "holder_unreachable", "stopping")
}
"""Codes of problems that go by themselves: the record can be sent again."""
OF_BATCH: Final = re.compile(r"(sample|id|timestamp)s(?:\[\d+\]|$)")
"""How a batch names the parts of a record."""
OF_RECORD: Final = ("record", "stream", "id", *COLUMNS)
AT_ONCE: Final = 100
"""Refusals to describe before other requests have their turn."""
IS_ANOMALY: Final = OF_RECORD.index("is_anomaly")

logger = logging.getLogger(__name__)


class Answering(StrEnum):
    """Which records an answer lists."""

    ALL = "all"
    FLAGGED = "flagged"
    COUNTS = "counts"


Own = Callable[[list[RefusedRecord]], Response | Exception]
"""Answers in the own form of a protocol, or fails, given what was refused."""


async def answered(
    metrics: Metrics, outcomes: Outcomes, answering: Answering, *, retry: bool, own: Own | None = None
) -> Response:
    """Answer with what became of each record; with a problem if none was taken or, with retry, if some must come again.

    Senders that read only the status repeat everything after a 429 or a 5xx, and nothing after a 422.
    """
    refusals = sorted(outcomes.refused, key=lambda refusal: refusal.place)
    problems = await documents(refusals)
    for problem in problems:
        metrics.count_refused_record(problem.code)
    note_failures(metrics, refusals, problems)
    metrics.ignored_values.inc(outcomes.ignored)
    failures = zip(refusals, problems, strict=True)
    failure = next((one.error for one, problem in failures if is_worth_repeating(problem, outcomes, retry=retry)), None)
    if failure is None and problems and not outcomes.taken:
        failure = NothingTaken(len(problems))
    if failure is None:
        reply = own(problems) if own else answer(summary(outcomes, problems, answering))
        if isinstance(reply, Response):
            return reply
        failure = reply
    document = problem_of(failure)
    return respond(listing(document, problems, answering), headers_of(document.status, failure))


def is_worth_repeating(problem: Problem, outcomes: Outcomes, *, retry: bool) -> bool:
    """Tell whether the whole request fails with this problem of a record, because it can be repeated."""
    if outcomes.taken:
        return retry and problem.code in PASSING
    return problem.status == 429 or problem.status >= 500


async def documents(refusals: Sequence[Refusal]) -> list[RefusedRecord]:
    """Describe the refusals; a failure that several records share is described once. Other requests run in between."""
    shared: dict[int, Problem] = {}
    found = list[RefusedRecord]()
    for first in range(0, len(refusals), AT_ONCE):
        found += [described(refusal, shared) for refusal in refusals[first : first + AT_ONCE]]
        await asyncio.sleep(0)
    return found


def described(refusal: Refusal, shared: dict[int, Problem]) -> RefusedRecord:
    """Describe one refusal."""
    error = refusal.error
    if isinstance(error, Refused):
        problem = problem_of(located(error, refusal.place))
    else:
        problem = shared.get(id(error)) or shared.setdefault(id(error), problem_of(error))
    words = {name: getattr(problem, name) for name in Problem.__struct_fields__ if name not in ("errors", "n_errors")}
    record = refusal.record
    stream, client_id = (None, None) if record is None else (record.stream, record.client_id or None)
    return RefusedRecord(**words, record=refusal.place, stream=stream, id=client_id)


def located(error: Refused, place: int) -> Refused:
    """Name the field of an error as the request does, by the place of the record and not by that in its batch."""
    return type(error)(OF_BATCH.sub(rf"records[{place}].\1", error.field, count=1), error.value, error.limit)


def note_failures(metrics: Metrics, refusals: Sequence[Refusal], problems: Sequence[RefusedRecord]) -> None:
    """Count each reason once in the metrics of the store and of limits; log what failed in this worker."""
    counted = set[int]()
    for refusal, problem in zip(refusals, problems, strict=True):
        if id(refusal.error) in counted or isinstance(refusal.error, RefusedByHolder):
            continue
        counted.add(id(refusal.error))
        count_problem(metrics, refusal.error)
        if problem.code == "internal_error":
            logger.error("records could not be ingested", exc_info=refusal.error)


def place_of(problem: RefusedRecord) -> str:
    """Give the field of a refused record, or else the record: each names another place."""
    is_within = isinstance(problem.field, str) and problem.field.startswith("records[")
    return str(problem.field) if is_within else f"records[{problem.record}]"


def listing(problem: Problem, problems: list[RefusedRecord], answering: Answering) -> IngestProblem:
    """Give a problem of the whole request that names the first wrong records, and lists all unless only counts are."""
    words = {name: getattr(problem, name) for name in Problem.__struct_fields__}
    found = IngestProblem(**words)
    found.errors = [
        Wrong(place_of(one), None if one.value is UNSET else one.value, one.limit or one.detail)
        for one in islice(problems, MOST_NAMED)
    ]
    found.n_errors, first = len(problems), found.errors[0]
    found.field, found.value, found.limit = first.field, first.value, first.limit
    if answering is not Answering.COUNTS:
        found.problems = problems
    return found


def summary(outcomes: Outcomes, problems: list[RefusedRecord], answering: Answering) -> IngestAnswer:
    """Give the counts, and what was asked for beside them."""
    taken = sum(len(record.places) for records, _ in outcomes.taken for record in records)
    found = IngestAnswer(
        records=taken + len(problems) + outcomes.ignored,
        taken=taken,
        refused=len(problems),
        ignored=outcomes.ignored,
        flagged=flagged(outcomes),
        refused_by_code=dict(Counter(problem.code for problem in problems)),
    )
    if answering is not Answering.COUNTS:
        found.problems = problems
        for name, column in columns(outcomes, only_flagged=answering is Answering.FLAGGED).items():
            setattr(found, name, column)
    return found


def flagged(outcomes: Outcomes) -> int:
    """Count the records of samples that were flagged."""
    return sum(
        len(record.places)
        for records, given in outcomes.taken
        for record, is_anomaly in zip(records, given.is_anomaly.tolist(), strict=True)
        if is_anomaly
    )


def columns(outcomes: Outcomes, *, only_flagged: bool) -> dict[str, list[Any]]:
    """Give the columns of the records that were taken, in the order of the request."""
    rows = [
        (place, record.stream, record.client_id or None, *said)
        for records, given in outcomes.taken
        for record, *said in zip(records, *(getattr(given, name).tolist() for name in COLUMNS), strict=True)
        for place in record.places
    ]
    rows = sorted((row for row in rows if row[IS_ANOMALY]) if only_flagged else rows, key=itemgetter(0))
    found = {name: [row[i] for row in rows] for i, name in enumerate(OF_RECORD)}
    found["in_maintenance"] = found.pop("held_out")
    return found | {"incident": incident_ids(found["incident"]), "event": incident_events(found["event"])}
