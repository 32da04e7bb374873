"""What a label says: which of its values are the anomalies."""

import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from app.counts import counted
from app.replay.reading.cells import BadTable, is_missing, quoted

ANY: Final = "*"
UNDERSTOOD: Final = (("1", "0"), ("true", "false"))
MOST_SHOWN: Final = 5


@dataclass
class LabelReader:
    """Reads the cells of the column of labels: True anomalous, False normal, None unknown.

    `told` are the values for anomalous and normal; one of them may be *, all others. Without it only 1 and 0, or true
    and false, are understood: everything else could mean the opposite, as -1 does in scikit-learn.
    """

    column: str
    told: tuple[str, str] | None = None
    n_anomalous: int = 0
    n_normal: int = 0
    _values: tuple[str, str] | None = None
    _seen: Counter[str] = field(default_factory=Counter)
    _first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = self.told and (_plain(self.told[0]), _plain(self.told[1]))
        if self._values and self._values[0] == self._values[1]:
            raise BadTable(f"the labels {' and '.join(map(quoted, self.told or ()))} are the same")

    def survey(self, line: int, cell: str) -> None:
        """Note a value that will come."""
        value = _plain(cell)
        self._seen[value] += 1
        self._first.setdefault(value, (line, cell))

    def settle(self) -> None:
        """Decide what the values mean. Raises BadTable if nobody knows."""
        values = [value for value in self._seen if self._is_value(value)]
        if self._values is None:
            self._values = next((known for known in UNDERSTOOD if set(values) <= set(known)), None)
        if self._values is None:
            raise BadTable(self._question(values))
        for value, (line, cell) in self._first.items():
            label = self.read(line, cell)
            self.n_anomalous += self._seen[value] * (label is True)
            self.n_normal += self._seen[value] * (label is False)

    def read(self, line: int, cell: str) -> bool | None:
        """Give the label. Raises BadTable."""
        assert self._values is not None
        value, (anomalous, normal) = _plain(cell), self._values
        if value in (anomalous, normal):
            return value == anomalous
        if not self._is_value(value):
            return None
        if ANY in self._values:
            return anomalous == ANY
        said = f"line {line}, column {self.column}: the label {quoted(cell)} is neither {anomalous} (anomalous)"
        raise BadTable(f"{said} nor {normal} (normal); say what the labels mean with --label-values ANOMALY,NORMAL")

    def _is_value(self, value: str) -> bool:
        return value in (self._values or ()) or not is_missing(value)

    def _question(self, values: list[str]) -> str:
        firsts = [(self._seen[value], *self._first[value]) for value in values[:MOST_SHOWN]]
        shown = [f"{quoted(cell)} ({counted(n, 'time')}, first in line {line})" for n, line, cell in firsts]
        more = f", and {len(values) - MOST_SHOWN} more" if len(values) > MOST_SHOWN else ""
        rarest, commonest = min(values, key=lambda v: self._seen[v]), max(values, key=lambda v: self._seen[v])
        example = f"{rarest},{commonest}" if len(values) == 2 else f"{ANY},{commonest}"
        said = f"column {self.column} holds the labels {', '.join(shown)}{more}: say which are the anomalies with"
        return f"{said} --label-values ANOMALY,NORMAL (* is all others), such as --label-values={shlex.quote(example)}"


def _plain(cell: str) -> str:
    return cell.strip().lower().removesuffix(".0")
