"""The log of a stream in the state of a streaming query: what labels need of samples, in a store of Spark's own.

Each look into that store is a message to the JVM: so what is needed for every sample is in one value, the directory.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

import msgspec
import numpy as np
from pyspark.sql.streaming import StatefulProcessorHandle

from app.storage import INCIDENTS_KEPT, START, Entry, IncidentRow
from app.streams.log.incidents import Incident, read_incident
from app.streams.state.state import StreamState
from core import Records

BYTES: Final = "bytes BINARY"
SEQ: Final = "seq BIGINT"
NO_ID: Final = 0


class Batch(msgspec.Struct, array_like=True):
    """Samples as they were observed, with their ids."""

    records: bytes
    ids: tuple[str, ...]


class Directory(msgspec.Struct, array_like=True):
    """Where things stand: the first seq of each batch, which samples are labelled, the rows of the incidents.

    prints holds 4 bytes for each sample from the first batch on: a fingerprint of its id.
    """

    batches: list[int] = msgspec.field(default_factory=list)
    labelled: list[int] = msgspec.field(default_factory=list)
    incidents: dict[int, bytes] = msgspec.field(default_factory=dict)
    prints: bytes = b""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Directory)
_BATCH = msgspec.msgpack.Decoder(Batch)


class KeptState:
    """The state and the log of the stream whose turn it is; Spark gives each stream its own behind the same handle."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", BYTES)
        self._directory = handle.getValueState("directory", BYTES)
        self._batches = handle.getMapState("batches", SEQ, BYTES)
        self._records = handle.getMapState("labelled", SEQ, BYTES)
        self._begin(Directory())

    def _begin(self, at: Directory) -> None:
        self._at, self._labelled = at, set(at.labelled)
        self._prints = np.frombuffer(at.prints, "<u4")
        self._read: dict[int, Batch] = {}

    def load(self) -> StreamState | None:
        """Turn to the stream whose rows have come; None if it is new."""
        found = self._directory.get()
        self._begin(Directory() if found is None else _DECODER.decode(found[0]))
        state = self._state.get()
        return None if state is None else StreamState.from_bytes(bytes(state[0]), START)

    def save(self, state: StreamState) -> None:
        """Keep the state for the next rows."""
        self._at.labelled = sorted(self._labelled)
        self._at.prints = self._prints.tobytes()
        self._state.update((state.to_bytes(),))
        self._directory.update((_ENCODER.encode(self._at),))

    def find_id(self, client_id: str) -> int | None:
        sought, oldest = _print_of(client_id), self._at.batches[0] if self._at.batches else 0
        for place in np.flatnonzero(self._prints == sought)[::-1].tolist():
            first = self._first_of(oldest + place)
            if self._batch(first).ids[oldest + place - first] == client_id:
                return int(oldest + place)
        return None

    def records(self, seqs: Iterable[int]) -> dict[int, Records]:
        found, batches = dict[int, Records](), dict[int, Records]()
        for seq in sorted(set(seqs)):
            if seq in self._labelled:
                found[seq] = Records.from_bytes(bytes(self._records.getValue((seq,))[0]))
            elif self._at.batches and self._at.batches[0] <= seq < self._at.batches[0] + len(self._prints):
                first = self._first_of(seq)
                if first not in batches:
                    batches[first] = Records.from_bytes(self._batch(first).records)
                found[seq] = batches[first][seq - first]
        return found

    def _first_of(self, seq: int) -> int:
        return self._at.batches[bisect_right(self._at.batches, seq) - 1]

    def _batch(self, first: int) -> Batch:
        if first not in self._read:
            self._read[first] = _BATCH.decode(self._batches.getValue((first,))[0])
        return self._read[first]

    def incidents(self, seqs: Iterable[int]) -> dict[int, Incident]:
        rows = self._at.incidents
        return {seq: read_incident(IncidentRow(seq, 0, rows[seq])) for seq in seqs if seq in rows}

    def add_samples(self, entry: Entry, records: Records, changed: Sequence[Incident]) -> None:
        first, n = int(records.seq[0]), len(records)
        ids = entry.ids or ("",) * n
        self._read[first] = Batch(records.to_bytes(), ids)
        self._batches.updateValue((first,), (_ENCODER.encode(self._read[first]),))
        self._at.batches.append(first)
        prints = np.array([_print_of(name) if name else NO_ID for name in ids], "<u4")
        self._prints = np.concatenate([self._prints, prints])
        self._note(changed)

    def add_labels(self, entry: Entry, after: Records, changed: Sequence[Incident]) -> None:
        for i, seq in enumerate(after.seq.tolist()):
            self._records.updateValue((seq,), (after[i].to_bytes(),))
            self._labelled.add(seq)
        self._note(changed)

    def _note(self, changed: Sequence[Incident]) -> None:
        rows = self._at.incidents
        rows.update((incident.seq, incident.row().body) for incident in changed)
        while len(rows) > INCIDENTS_KEPT:
            del rows[min(rows)]

    def forget_before(self, seq: int) -> None:
        while len(self._at.batches) > 1 and self._at.batches[1] <= seq:
            first = self._at.batches.pop(0)
            end = self._at.batches[0]
            self._batches.removeKey((first,))
            self._read.pop(first, None)
            self._prints = self._prints[end - first :]
            for one in [labelled for labelled in self._labelled if labelled < end]:
                self._records.removeKey((one,))
                self._labelled.remove(one)


def _print_of(client_id: str) -> int:
    return crc32(client_id.encode()) or 1
