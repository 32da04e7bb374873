"""The state of a detector: everything that must be saved so that it goes on as if it had never stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.bounds import check_bounds
from core.calendar import calendar_columns
from core.config import DetectorConfig
from core.decision.held_out import HeldOut
from core.decision.rule import DecisionRule
from core.density.model import DensityModel
from core.density.unscaled import Unscaled
from core.engine.upgrade import upgraded
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, NotReady
from core.feedback.costs import RunningCosts
from core.feedback.resemblance import Resemblance
from core.records import Records
from core.scaling import Scaling, check_scaling, given
from core.snapshot import Arrays, decode_versions, encode_snapshot, take
from core.validation import checked_samples

VERSION: Final = 7
OLDER: Final = (2, 3, 4, 5, 6)
"""Versions that are read too; 6 is 5 with samples that were held out."""


class DetectorState:
    """Everything that a detector knows. Samples and labels change it on their paths; to_bytes saves it.

    config     the settings
    is_warm    whether it has begun with the model of another detector, without a warm-up
    warmup     records of the samples that set the first scaling, kept for good: a label may come for any of them
    scaling    from the user's units to the space of the densities; exists once the warm-up is over
    unscaled   the features whose scale is not known yet
    density    p(x): the model of all samples that config.learn_from wants
    resemblance  what labels add to scores
    volume     in nats, that of the scaling when the warm-up ended
    rule       decides: what is flagged, how rare it is, and incidents; exists once the warm-up is over
    costs      what the decisions on labelled samples cost
    held_out   the samples that have a number, and nothing else
    next_seq   the number of the next sample; the first one has first_seq
    """

    def __init__(self, config: DetectorConfig, *, first_seq: int = 1) -> None:
        self.config = config
        self.first_seq = self.next_seq = first_seq
        self.is_warm = False
        self.held_out = HeldOut()
        self.warmup = Records.empty(0, config.n_features, 0)
        self.unscaled = Unscaled(config.kinds, config.expected_anomaly_rate)
        self.density = DensityModel(config)
        self.resemblance = Resemblance(config)
        self.costs = RunningCosts(config.cost_false_negative, config.cost_false_positive)
        self._scaling: Scaling | None = None
        self._rule: DecisionRule | None = None
        if (scaling := given(config)) is not None:
            self.start(scaling)

    def start(self, scaling: Scaling, volume: float | None = None) -> None:
        """End the warm-up: set the scaling, and make the decision rule that the config names.

        volume, in nats, is that of the scaling when the warm-up ended, if it has changed since.
        """
        self._scaling = scaling
        self.volume = scaling.log_volume if volume is None else volume
        self._rule = DecisionRule(self.config, self.volume, self.held_out)

    def hold_out(self, n: int) -> None:
        """Give numbers to n samples, at least one, of which nothing is learned."""
        self.held_out.add(self.next_seq, n)
        self.next_seq += n
        if self.ready:
            self.rule.hold_out(self.next_seq - 1)

    def rescale(self, scaling: Scaling) -> None:
        """Change the scaling of features that have always been 0 in the scaled space: all scores change alike."""
        before, after = (float(one.score(self._center, np.zeros(1))[0]) for one in (self.scaling, scaling))
        self.rule.base += after - before
        self._scaling = scaling

    @contextmanager
    def rescaled(self, scaling: Scaling) -> Iterator[None]:
        """Change the scaling as rescale does, for a while."""
        before, base = self._scaling, self.rule.base
        self.rescale(scaling)
        try:
            yield
        finally:
            self._scaling, self.rule.base = before, base

    @property
    def _center(self) -> FloatArray:
        return np.zeros((1, self.config.n_features))

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over, so that the next sample gets a score."""
        return self._scaling is not None

    @property
    def samples_needed(self) -> int:
        """Samples that the warm-up still needs; 0 once ready."""
        return 0 if self.ready else self.config.warmup - len(self.warmup)

    def columns(self, X: FloatArray, time: FloatArray, own: dict[int, Scaling] | None = None) -> FloatArray:
        """Give the columns of the model (n, columns), scaled, for samples (n, m) with timestamps (n,), NaN for none.

        own has the scalings, by row, of those samples that have one of their own.
        """
        Z = self.scaling.apply(X)
        for row, scaling in (own or {}).items():
            Z[row] = scaling.apply(X[row])
        if self.config.calendar is None:
            return Z
        return np.concatenate([Z, calendar_columns(self.config.calendar, time)], 1)

    @property
    def scaling(self) -> Scaling:
        """The map to the space of the densities. Raises NotReady during the warm-up."""
        if self._scaling is None:
            raise NotReady(self.samples_needed)
        return self._scaling

    @property
    def rule(self) -> DecisionRule:
        """The decision rule. Raises NotReady during the warm-up."""
        if self._rule is None:
            raise NotReady(self.samples_needed)
        return self._rule

    @property
    def next_threshold(self) -> float:
        """The threshold that the next score will meet, in nats; NaN before ready."""
        return self.rule.value if self.ready else np.nan

    @property
    def incident(self) -> int:
        """The incident that is open, 0 if there is none."""
        return self.rule.incident if self.ready else 0

    @property
    def newest_time(self) -> float | None:
        """The newest timestamp observed, in seconds; None before any, and without a half-life in seconds."""
        if self.config.half_life_seconds is None:
            return None
        newest = max(self.density.newest_time, self.warmup.time.max(initial=-np.inf))
        return float(newest) if np.isfinite(newest) else None

    def renumber(self, first_seq: int) -> None:
        """Number the samples anew, the first one first_seq."""
        shift = first_seq - self.first_seq
        self.first_seq, self.next_seq = first_seq, self.next_seq + shift
        self.held_out.renumber(shift)
        self.warmup = self.warmup.renumbered(shift)
        self.resemblance.renumber(shift)
        if self.ready:
            self.rule.renumber(shift)

    def to_bytes(self) -> bytes:
        """Write everything as a versioned snapshot. Raises InvalidState if from_bytes could not read it back."""
        arrays = self.state()
        try:
            self.check(arrays)
        except InvalidSnapshot as error:
            raise InvalidState(error.reason) from error
        meta = {"config": self.config.to_dict(), "first_seq": self.first_seq, "next_seq": self.next_seq}
        return encode_snapshot("detector", VERSION, meta | ({"warm": True} if self.is_warm else {}), arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "DetectorState":
        """Read the state that to_bytes wrote. Raises InvalidSnapshot for anything else."""
        version, meta, arrays = decode_versions(blob, "detector", VERSION, *OLDER)
        try:
            state = cls(DetectorConfig.from_dict(meta["config"]), first_seq=meta["first_seq"])
            state.next_seq, state.is_warm = meta["next_seq"], "warm" in meta
        except (KeyError, TypeError, InvalidConfig) as error:
            raise InvalidSnapshot(f"its config is not valid: {error}") from error
        state.warmup = Records.from_bytes(take(arrays, "warmup", np.uint8, (-1,)).tobytes())
        if version < VERSION:
            arrays = upgraded(arrays, state.config, version)
        state.check(arrays)
        state.load(arrays)
        return state

    def state(self) -> dict[str, NDArray[Any]]:
        """Give the arrays of a snapshot, by name."""
        arrays = self.density.state() | self.resemblance.state() | self.costs.state() | self.held_out.state()
        arrays["warmup"] = np.frombuffer(self.warmup.to_bytes(), np.uint8)
        if self.ready:
            arrays |= {"location": self.scaling.location, "scale": self.scaling.scale} | self.rule.state()
            arrays |= self.unscaled.state() | {"scale_volume": np.array([self.volume])}
        return arrays

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no history with this config, warm-up and numbering could have produced them."""
        seqs = self.first_seq, self.next_seq
        if not all(type(seq) is int for seq in seqs) or not 1 <= self.first_seq <= self.next_seq < 2**62:
            raise InvalidSnapshot("its sequence numbers are not valid")
        check_bounds(arrays)
        HeldOut.check(arrays, *seqs)
        self._check_warmup(HeldOut.of(arrays).n, ready="location" in arrays)
        self.density.check(arrays)
        self.resemblance.check(arrays)
        self.costs.check(arrays)
        if "location" in arrays:
            location, scale = (take(arrays, k, np.float64, (self.config.n_features,)) for k in ("location", "scale"))
            check_scaling(location, scale, self.config)
            self.unscaled.check(arrays)
            take(arrays, "scale_volume", np.float64, (1,))
            DecisionRule(self.config, 0.0).check(arrays, self.next_seq)

    def _check_warmup(self, n_held_out: int, *, ready: bool) -> None:
        self.warmup.check()
        n, m = self.warmup.x.shape
        n_seen, wanted = self.next_seq - self.first_seq - n_held_out, self.config.warmup
        fits = m == self.config.n_features and self.warmup.rows["learned"].shape[1] in (0, self.config.n_columns)
        is_right = n == 0 and ready if self.is_warm else n == min(n_seen, wanted) and ready == (n == wanted)
        if not fits or not is_right:
            raise InvalidSnapshot("its warm-up does not fit its config")
        try:
            checked_samples(self.warmup.x, m, self.config.features)
        except InvalidObservation as error:
            raise InvalidSnapshot(f"its warm-up holds what is no sample: {error}") from error
        self.density.check_times(self.warmup.time)

    def load(self, arrays: Arrays) -> None:
        """Go on from arrays that check has passed."""
        self.held_out.load(arrays)
        if "location" in arrays:
            scaling = Scaling(arrays["location"], arrays["scale"], self.config.kinds, self.config.values)
            self.start(scaling, float(arrays["scale_volume"][0]))
            self.rule.load(arrays, self.first_seq, self.next_seq)
            self.unscaled.load(arrays)
        self.density.load(arrays)
        self.resemblance.load(arrays)
        self.costs.load(arrays)
