"""What happens to a stream, as `watch` tells it; `position` is where to go on after the event."""

import msgspec

from itan_client.answers.history import LoggedColumns


class SamplesSeen(LoggedColumns, frozen=True, kw_only=True):
    """Samples were observed; thinned if there were very many at once."""

    thinned: bool
    values: list[list[float | None]] | None = None
    position: str = ""


class LabelsGiven(msgspec.Struct, frozen=True):
    """Labels were applied or withdrawn (None), and ended the incidents of `accepted`."""

    seq: list[int]
    label: list[bool | None]
    accepted: list[int]
    threshold: float | None
    position: str = ""


class ModelGrown(msgspec.Struct, frozen=True):
    """The tree of the model has another size."""

    n_seen: int
    n_nodes: int
    levels: int
    position: str = ""


class LogReplaced(msgspec.Struct, frozen=True):
    """The stream was reset or imported: what was known of it is no longer so."""

    position: str


class StreamDeleted(msgspec.Struct, frozen=True):
    """The stream was deleted; nothing follows."""

    position: str = ""


Event = SamplesSeen | LabelsGiven | ModelGrown | LogReplaced | StreamDeleted
EVENTS: dict[str, type[Event]] = {
    "samples": SamplesSeen,
    "labels": LabelsGiven,
    "model": ModelGrown,
    "reset": LogReplaced,
    "deleted": StreamDeleted,
}
