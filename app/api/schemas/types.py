"""Types that several bodies share."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from app.api.incidents import Event
from app.streams.ids import LONGEST_SAMPLE_ID
from app.streams.log.positions import MAX_SEQ

ClientId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_SAMPLE_ID,
        pattern=r"^[^\u0000-\u001f\u007f-\u009f]*(?![\s\S])",
        description="without control characters",
    ),
]
Seq = Annotated[int, Meta(ge=1, le=MAX_SEQ)]
AsOfSeq = Annotated[
    int, Meta(description="the newest sample that the answer takes into account; another worker may know newer ones")
]
Moment = (
    Annotated[float, Meta(description="epoch seconds")]
    | Annotated[datetime, Meta(tz=True, description="RFC 3339 with offset", examples=["2026-11-28T08:00:00Z"])]
)
Severity = Annotated[
    float | None,
    Meta(
        description="-log10 of the chance that an ordinary sample scores as high: 2 is 1 in 100, beyond that a rank; "
        "null before the stream is ready"
    ),
]
IncidentOf = Annotated[
    int | None, Meta(description="seq of the sample that opened the incident; null if there is none")
]
EventOf = Annotated[Event | None, Meta(description="what happened to the incident at the sample")]
ArraySample = list[float | None]
NamedSample = dict[str, float | None]
SampleRows = Annotated[list[ArraySample | NamedSample], Meta(min_length=1)]
