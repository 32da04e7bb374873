"""The samples of one request, with their ids and times."""

from dataclasses import dataclass

from app.streams.batches.samples import Matrix, Samples
from app.streams.batches.timestamps import Times
from app.streams.errors import InvalidIds, refuse_beyond
from app.streams.faults import Fault
from core import DetectorConfig


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one request; ids ("" for none) and timestamps are either empty or one a sample.

    explain asks for an explanation of each flagged sample.
    """

    samples: Samples
    ids: tuple[str, ...] = ()
    timestamps: Times | None = None
    explain: bool = False

    def matrix(self, config: DetectorConfig, max_samples: int) -> Matrix:
        """Give the samples as a matrix; cheap checks come first. Raises TooMany, InvalidIds or InvalidSamples."""
        n = self.samples.count(config.n_features)
        refuse_beyond(max_samples, n, "samples", "ITAN_MAX_BATCH_SAMPLES")
        X = self.samples.matrix(config)
        for field, column in (("ids", self.ids), ("timestamps", self.timestamps)):
            if column is not None and len(column) not in (0, n):
                raise InvalidIds(field, f"{len(column)} entries", f"as many as the samples, {n}")
        if self.ids:
            refuse_doubled(self.ids)
        return X


def refuse_doubled(ids: tuple[str, ...]) -> None:
    """Raise InvalidIds if an id occurs twice in a batch."""
    given = [client_id for client_id in ids if client_id]
    if len(set(given)) < len(given):
        first: dict[str, int] = {}
        again = [i for i, client_id in enumerate(ids) if client_id and first.setdefault(client_id, i) != i]
        limit = "different from the ids before it in the batch"
        raise InvalidIds.of((Fault(f"ids[{i}]", ids[i], limit) for i in again), len(again))
