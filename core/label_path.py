"""Labels that come after the decision: threshold, totals and densities follow them, by what a record kept."""

from dataclasses import replace

from core.density.model import DensityModel
from core.density.receipt import Receipt
from core.feedback.costs import Outcomes
from core.feedback.supervision import Supervision
from core.records import LEARNED, NOT_LEARNED, RETRACTED, Records
from core.sample_path import Passing


class Labelling:
    """What a label changes, once the scaling is known. Labels are +1 (anomalous), -1 (normal) and 0 (none)."""

    def __init__(self, passing: Passing, model: DensityModel, supervision: Supervision, outcomes: Outcomes) -> None:
        self._passing, self._model, self._supervision, self._outcomes = passing, model, supervision, outcomes

    def follow(self, rows: Records, i: int, old: int, label: int) -> bool:
        """Let everything follow record i from its old label to a new one; whether it left the density."""
        row = rows.rows[i]
        if row["ready"]:
            self._passing.threshold.label(int(row["seq"]), float(row["score"]), label, float(row["level"]))
            self._outcomes.move(float(row["score"]), bool(row["is_anomaly"]), old, label)
        retracted = self._move_in_density(rows, i)
        self.teach(rows, i, old, label)
        return retracted

    def teach(self, rows: Records, i: int, old: int, label: int) -> None:
        """Let the second model take a normal in or out, and the nodes' normality know."""
        row = rows.rows[i]
        if not self._supervision.needed:
            return
        if row["status"] == NOT_LEARNED:
            x = self._passing.examine(row["x"][None], row["time"][None]).learned[0]
        else:
            receipt = self._receipt(rows, i)
            x = receipt.x
            if old < 0:
                self._supervision.normals.retract(replace(receipt, ordinal=int(row["normal_ordinal"])))
            if label < 0:
                row["normal_ordinal"] = self._supervision.learn(receipt)
        self._supervision.label(int(row["seq"]), label, float(row["gain"]), x)

    def _move_in_density(self, rows: Records, i: int) -> bool:
        """Let the density learn, take back or learn again what learn_from wants otherwise now; whether it left."""
        row = rows.rows[i]
        wanted, status = bool(self._passing.wanted(row["label"], row["is_anomaly"])), int(row["status"])
        if wanted and status == NOT_LEARNED:
            self._passing.learn(self._passing.examine(row["x"][None], row["time"][None]), rows[i])
        elif wanted != (status == LEARNED) and status != NOT_LEARNED:
            receipt = self._receipt(rows, i)
            (self._model.restore if wanted else self._model.retract)(receipt)
            row["status"] = LEARNED if wanted else RETRACTED
        return not wanted and status == LEARNED

    def _receipt(self, rows: Records, i: int) -> Receipt:
        row = rows.rows[i]
        moment = float(self._model.moments(row["ordinal"].astype(float), row["time"]))
        return rows.receipt(i, self._passing.scaling.apply(row["x"]), moment)


def outcome(old: int, new: int) -> str:
    """What becomes of a label: applied, duplicate, revised or withdrawn."""
    if old == new:
        return "duplicate"
    if new == 0:
        return "withdrawn"
    return "applied" if old == 0 else "revised"
