"""The log in Spark's state knows what the log in memory knows, across micro-batches and whatever was forgotten."""

from typing import Any

import numpy as np
import pytest

from app.bulk.kept import KeptLog
from app.bulk.stream import StreamRun
from tests.app.harness import NOW
from tests.bulk.samples import job_of, rows_of

pytest.importorskip("pyspark", reason="Spark is not installed: uv sync --group spark")

from app.bulk.spark.kept import KeptState


class Value:
    """A state variable, or the values of one by their keys, with what Spark's have of methods."""

    def __init__(self) -> None:
        self.value: Any = None
        self.values: dict[Any, Any] = {}

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return self.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.values[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.values[key]


class Handle:
    """Gives each variable by its name, again and again the same."""

    def __init__(self) -> None:
        self.variables: dict[str, Value] = {}

    def getValueState(self, name: str, schema: str) -> Value:  # noqa: N802
        return self.variables.setdefault(name, Value())

    def getMapState(self, name: str, key: str, value: str) -> Value:  # noqa: N802
        return self.variables.setdefault(name, Value())


@pytest.mark.parametrize("keep", [70, 100_000])
def test_it_knows_what_a_log_in_memory_knows(keep):
    job, rows, rng, handle = job_of(keep_samples=keep), rows_of(n=500), np.random.default_rng(0), Handle()
    alone, outcomes = StreamRun(job, KeptLog()), set()
    for first in range(0, len(rows), 25):
        kept = KeptState(handle)  # as after a restart
        going = StreamRun(job, kept, kept.load())
        again = int(rng.integers(0, first + 1))
        labels = {int(seq): bool(rng.random() < 0.4) for seq in rng.integers(1, first + 25, 5)}
        names = [f"row-{i}" for i in rng.integers(0, first + 60, 5)]
        said = []
        for run in (alone, going):
            records, _ = run.observe(rows[first : first + 25], NOW)
            _, places = run.observe(rows[again : again + 1], NOW)
            found = [run.find(name) for name in names]
            said.append((records.score.tolist(), places, found, run.label(labels, NOW), run.state.to_bytes()))
        assert str(said[0]) == str(said[1])
        outcomes.update(said[0][3].values())
        kept.save(going.state)
    assert outcomes >= ({"applied", "expired"} if keep == 70 else {"applied", "revised", "duplicate"})
    assert len(handle.variables["batches"].values) == len(alone.kept._batches)
    assert handle.variables["labelled"].values.keys() == {(seq,) for seq in alone.kept.labelled}
