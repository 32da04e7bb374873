"""Logs of streams that led a random life, without a service."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.storage import Entry, Position
from app.streams.log.events import Cause, batch_body, config_body, label_body
from app.streams.log.explanations import explained_in
from core import Detector, DetectorConfig, Records

FEATURES = [{"name": "a"}, {"name": "b", "kind": "poisson"}, {"name": "c"}]
CONFIGS: list[dict[str, Any]] = [
    {"features": FEATURES, "warmup": 5, "learn_from": "all"},
    {"n_features": 3, "profile": "paper", "learn_from": "all"},
]


@dataclass
class Life:
    """A stream that takes events one after another."""

    seed: int
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.detector = Detector(DetectorConfig(**CONFIGS[self.seed % len(CONFIGS)]))
        self.position, self.at = Position(0, 0), 1.8e9
        self.learned: list[Records] = []

    def take(self, event: str) -> None:
        """Take an event of a kind."""
        self.at += float(self.random.exponential(60.0))
        if event == "labels" and self.learned:
            self.label()
        elif event == "config":
            change = self.detector.reconfigure({"half_life_samples": float(self.random.uniform(20, 50))})
            self.note(config_body(change, self.at))
        elif event == "batch":
            self.observe(int(self.random.integers(2, 9)))
        else:
            self.observe(1, held_out=event == "held out", timed=event == "timed", named=event != "unnamed")

    def observe(self, n: int, *, held_out: bool = False, timed: bool = False, named: bool = True) -> None:
        """Log samples, some with values missing, or far off."""
        X = self.random.normal(size=(n, 3))
        X[:, 1] = self.random.poisson(3, n)
        X[:, 1:][self.random.random((n, 2)) < 0.1] = np.nan
        X[self.random.random(n) < 0.1, 0] = 1e6
        times = self.at - np.arange(n, 0.0, -1.0) if timed else None
        out = self.detector.observe(X, times, held_out=np.full(n, held_out), explain=True)
        first, last = self.position.seq + 1, self.position.seq + n
        causes = {last: [Cause(0, 1.5, float(X[-1, 1]))]} if self.random.random() < 0.2 else {}
        body = batch_body(out.records, times, self.at, explained_in([out]), causes)
        names = tuple(f"order-{seq:06d}" if seq % 5 else "" for seq in range(first, last + 1)) if named else ()
        self.learned.append(out.records)
        self.position = Position(last, 0)
        self.entries.append(Entry(self.position, body, first, names))

    def label(self) -> None:
        """Log labels, one of them withdrawn at times."""
        i = int(self.random.integers(len(self.learned)))
        records = self.learned[i]
        labels = [(True, False, None)[int(k)] for k in self.random.integers(3, size=len(records))]
        self.learned[i] = self.detector.feedback(records, labels).records
        self.note(label_body(records, labels, self.at, [int(records.seq[0])] if len(records) > 1 else []))

    def note(self, body: bytes) -> None:
        """Log an event that is no batch."""
        self.position = Position(self.position.seq, self.position.sub + 1)
        self.entries.append(Entry(self.position, body))


EVENTS = ("single", "single", "timed", "unnamed", "batch", "labels", "config", "held out")


def entries_of(seed: int, events: list[str]) -> list[Entry]:
    """Give the log of a life."""
    life = Life(seed)
    for event in events:
        life.take(event)
    return life.entries
