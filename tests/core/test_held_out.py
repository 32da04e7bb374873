"""Samples that are held out get a score and a decision, and leave everything else as if they had never come."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core import Detector, DetectorConfig, InvalidObservation, InvalidState, Records, decode_snapshot
from core.decision.held_out import MOST_RUNS, HeldOut
from core.decision.rule import DecisionRule
from core.engine.state import VERSION
from core.records.layout import HELD_OUT
from core.snapshot import encode_snapshot
from tests.core.histories import Life, pick, same
from tests.core.samples import CONTEXTS, VARIANTS, clusters, detector
from tests.effort import tries

N = 130
LABELS = {40: {3: True, 7: False}, 70: {50: True, 60: True, 40: False, 41: False}, 110: {60: None, 90: False}}
SCORES = ["ordinary_seqs", "incident_seqs", "settling_seqs"]
OF_SEQS = {"incident", "labelled_seq", "warmup", "threshold_labels", "held_out_first", "held_out_count", *SCORES}
"""Arrays of a snapshot that hold seqs."""
RULE = DetectorConfig(2, expected_anomaly_rate=0.01, incident_accept_samples=30)


def stream(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of a stream, their times, and which are held out: some alone, some in runs, and some are far out."""
    X = clusters(N, seed=seed, missing=0.04)
    X[np.isnan(X[:, [0, 2]]).all(1), 0] = 0.25
    rng = np.random.default_rng(seed)
    held_out = rng.random(N) < 0.2
    held_out[[5, 6, 7, 66, 67, 68, 69, 70, 71]] = True
    X[held_out & (rng.random(N) < 0.5)] *= 50
    return X, 1e9 + np.arange(N, dtype=float), held_out


def feed(
    one: Detector, X: np.ndarray, times: np.ndarray, held_out: np.ndarray | None, cuts: list[int]
) -> tuple[list[Records], np.ndarray]:
    """Observe samples in batches, with labels in between: the records, and thresholds after labels."""
    records, thresholds = [], []
    for start, end in zip([0, *cuts], [*cuts, len(X)], strict=True):
        out = one.observe(X[start:end], times[start:end], held_out=None if held_out is None else held_out[start:end])
        records += [out.records[i] for i in range(len(out.records))]
        for index, label in LABELS.get(end, {}).items():
            said = one.feedback(records[index], [label])
            records[index] = said.records
            thresholds.append(said.threshold_after)
    return records, np.array(thresholds)


def answered(records: list[Records]) -> list[np.ndarray]:
    """What was said of samples, but for seqs."""
    rows = Records.concatenate(records).rows
    names = ("score", "threshold", "severity", "is_anomaly", "ready", "event", "label", "ordinary", "level")
    return [rows[name] for name in names]


def learned(one: Detector) -> dict[str, np.ndarray]:
    """All that a detector has learned, but for seqs."""
    arrays = one.state.state()
    if one.ready:
        n_opened, _, *counts = arrays["incident"].tolist()
        arrays["incident_counts"] = np.array([n_opened, *counts])
        arrays |= {f"{name}_aside": arrays[name] < 0 for name in SCORES}
    return {name: array for name, array in arrays.items() if name not in OF_SEQS}


def alike(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> list[str]:
    """The names of arrays that differ."""
    assert one.keys() == other.keys()
    return [name for name, array in one.items() if not np.array_equal(array, other[name], equal_nan=True)]


@pytest.mark.parametrize("variant", VARIANTS | CONTEXTS)
def test_the_others_are_answered_as_if_these_had_never_come(variant):
    X, times, held_out = stream(len(variant))
    fields = (VARIANTS | CONTEXTS)[variant]
    kept = np.flatnonzero(~held_out)
    place = {int(index): new for new, index in enumerate(kept)}
    whole, without, records, expected, start = detector(**fields), detector(**fields), [], [], 0
    for end in [*LABELS, N]:
        out = whole.observe(X[start:end], times[start:end], held_out=held_out[start:end]).records
        records += [out[i] for i in range(len(out))]
        part = kept[(kept >= start) & (kept < end)]
        out = without.observe(X[part], times[part]).records
        expected += [out[i] for i in range(len(out))]
        for index, label in LABELS.get(end, {}).items():
            said = whole.feedback(records[index], [label])
            records[index] = said.records
            if held_out[index]:
                assert said.outcome == ["not_learned"]
                continue
            wanted = without.feedback(expected[place[index]], [label])
            expected[place[index]] = wanted.records
            assert (said.outcome, said.threshold_after) == (wanted.outcome, wanted.threshold_after) or not whole.ready
        assert not alike(learned(whole), learned(without))
        start = end
    assert same(answered([records[i] for i in kept]), answered(expected))
    assert (whole.next_seq, whole.n_held_out) == (N + 1, N - len(kept))
    assert whole.n_flagged == without.n_flagged


class Without:
    """A detector that never sees what is held out; of that it answers nothing."""

    def __init__(self, inner: Detector) -> None:
        self.inner = inner

    def observe(self, X: np.ndarray, times: np.ndarray, held_out: np.ndarray) -> Any:
        out = self.inner.observe(X[~held_out], times[~held_out])
        records: list[Any] = [blank(x) for x in X]
        for i, row in enumerate(np.flatnonzero(~held_out)):
            records[row] = out.records[i]
        nothing, no = np.full(len(X), np.nan), np.zeros(len(X), bool)
        columns = {"score": nothing, "threshold": nothing, "is_anomaly": no, "ready": no}
        columns = {name: spread(column, getattr(out, name), ~held_out) for name, column in columns.items()}
        return SimpleNamespace(records=records, **columns)

    def feedback(self, records: Records, labels: list[bool | None]) -> Any:
        kept = np.flatnonzero(~records.held_out).tolist()
        before, retracted = self.inner.threshold, np.zeros(len(labels), bool)
        if not kept:
            return SimpleNamespace(
                records=records, threshold_before=before, threshold_after=before, retracted=retracted
            )
        said = self.inner.feedback(records[kept], [labels[i] for i in kept])
        changed = [records[i] for i in range(len(records))]
        for k, i in enumerate(kept):
            changed[i], retracted[i] = said.records[k], said.retracted[k]
        return SimpleNamespace(
            records=changed,
            threshold_before=said.threshold_before,
            threshold_after=said.threshold_after,
            retracted=retracted,
        )


def blank(x: np.ndarray) -> Records:
    record = Records.of(1, x[None], np.array([np.nan]))
    record.rows["status"] = HELD_OUT
    return record


def spread(column: np.ndarray, values: np.ndarray, where: np.ndarray) -> np.ndarray:
    column = column.copy()
    column[where] = values
    return column


@pytest.mark.parametrize("seed", range(tries(16)))
def test_so_it_is_in_long_random_lives(seed):
    life = Life(seed, 50)
    life.held_out = 0.3
    whole, without = Detector(life.config), Without(Detector(life.config))
    records: tuple[list, list] = [], []
    for event in life.events():
        got, expected = event(whole, records[0]), event(without, records[1])
        if len(got) == 4:
            n = len(got[0])
            kept = ~np.array([record.held_out[0] for record in records[0][-n:]])
            got, expected = ([column[kept] for column in answer] for answer in (got, expected))
        assert same(got, expected)
    assert not alike(learned(whole), learned(without.inner))
    assert whole.n_held_out > 10


@pytest.mark.parametrize("variant", VARIANTS | CONTEXTS)
def test_each_is_answered_as_if_it_came_next(variant):
    X, times, _ = stream(len(variant))
    one = detector(**(VARIANTS | CONTEXTS)[variant])
    one.observe(X[:90], times[:90])
    out = one.observe(X[90:], times[90:], held_out=np.ones(N - 90, bool))
    for i in range(0, N - 90, 6):
        next_one = Detector.from_bytes(one.to_bytes()).observe(X[90 + i], times[90 + i : 91 + i])
        for name in ("score", "threshold", "severity", "is_anomaly", "ready"):
            assert getattr(next_one, name)[0] == getattr(out, name)[i], (name, i)
    assert out.held_out.all()
    assert not out.incident.any()
    assert not out.event.any()


def test_a_feature_that_moves_for_the_first_time_has_its_unit_for_that_answer_alone():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:, 1] = 7.0
    one, moved = detector(2), np.array([[0.0, 7.5], [0.0, 7.0], [0.0, 7000.0]])
    one.observe(X)
    before = learned(one)
    out = one.observe(moved, held_out=np.ones(3, bool))
    for x, score, threshold in zip(moved, out.score, out.threshold, strict=True):
        alone = Detector.from_bytes(one.to_bytes()).observe([x])
        assert (alone.score[0], alone.threshold[0]) == (score, threshold)
    assert len(set(out.threshold.tolist())) > 1
    assert not alike(before, learned(one))


@pytest.mark.parametrize(
    "variant", ["default", "paper", "default, half-life in seconds", "context and calendar, diagonal"]
)
@pytest.mark.parametrize("step", [1, 17])
def test_the_cuts_of_batches_change_nothing(variant, step):
    X, times, held_out = stream(1)
    whole, cut = (detector(**(VARIANTS | CONTEXTS)[variant]) for _ in range(2))
    one, after = feed(whole, X, times, held_out, sorted(LABELS))
    other, then = feed(cut, X, times, held_out, sorted({*LABELS, *range(step, N, step)}))
    assert same([*answered(one), after], [*answered(other), then])
    assert whole.to_bytes() == cut.to_bytes()
    assert Detector.from_bytes(cut.to_bytes()).to_bytes() == cut.to_bytes()


def test_a_late_label_is_not_learned():
    one = detector(2)
    X = np.random.default_rng(0).normal(size=(100, 2))
    first = one.observe(X[:20], held_out=np.arange(20) == 3).records
    records = one.observe(X[20:], held_out=np.arange(80) > 70).records
    before = one.to_bytes()
    for record in (first[3], records[75]):
        said = one.feedback(record, [True])
        assert said.outcome == ["not_learned"]
        assert not said.retracted[0]
        assert said.records.to_bytes() == record.compact().to_bytes()
    assert one.to_bytes() == before
    assert one.feedback(Records.concatenate([records[75], records[5]]), [True, True]).outcome == [
        "not_learned",
        "applied",
    ]
    assert one.to_bytes() != before


def test_labels_find_their_samples_of_the_warm_up_past_those_held_out():
    X = np.random.default_rng(0).normal(size=(40, 2))
    one, other = detector(2), detector(2)
    held_out = np.arange(40) % 4 == 1
    records, expected = one.observe(X, held_out=held_out).records, other.observe(X[~held_out]).records
    assert not one.ready
    one.feedback(records[~held_out][10:14], [True, False, True, None])
    other.feedback(expected[10:14], [True, False, True, None])
    assert one.state.warmup.label.tolist() == other.state.warmup.label.tolist()
    one.renumber(1001)
    assert Detector.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
    record = one.observe(X[:1]).records
    assert int(record.seq[0]) == 1041
    assert one.feedback(record, [True]).outcome == ["applied"]
    assert one.state.warmup.label[-1] == 1


def test_flagged_ones_are_explained():
    one = detector(2)
    one.observe(np.random.default_rng(0).normal(size=(200, 2)))
    X = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 1.0], [0.0, -30.0], [0.0, 40.0]])
    out = one.observe(X, held_out=np.array([True, True, True, False, True]), explain=True)
    assert out.explanation is not None
    assert out.explanation.contribution.argmax(1).tolist() == [0, 1, 1]
    assert out.is_anomaly.tolist() == [False, True, False, True, True]


@pytest.mark.parametrize("mask", [[True], [1, 0], "no", [[True, False]], [None, True]])
def test_a_mask_that_is_none_is_refused(mask):
    one = detector(2)
    before = one.to_bytes()
    with pytest.raises(InvalidObservation, match="held_out"):
        one.observe(np.zeros((2, 2)), held_out=mask)
    assert one.to_bytes() == before


def reloaded(rule: DecisionRule, held_out: HeldOut, next_seq: int) -> DecisionRule:
    """The rule after a restart."""
    back = DecisionRule(RULE, 0.0, held_out)
    back.check(rule.state(), next_seq)
    back.load(rule.state(), 1, next_seq)
    return back


@pytest.mark.parametrize("seed", range(3))
def test_how_long_ago_labels_and_incidents_are_does_not_count_what_is_held_out(seed):
    rng, held_out, seq = np.random.default_rng(seed), HeldOut(), 1
    rule, without = DecisionRule(RULE, 0.0, held_out), DecisionRule(RULE, 0.0)
    seen: list[tuple[int, float, float]] = []
    for n in range(1, 1500):
        if n > 40 and rng.random() < 0.15:
            size = int(rng.integers(1, 30))
            held_out.add(seq, size)
            seq += size
            rule.hold_out(seq - 1)
        if n > 40 and rng.random() < 0.1:
            i, label = int(rng.integers(n - 1)), int(pick(rng, 1, 1, -1, 0))
            rule.label(*seen[i], label)
            without.label(i + 1, *seen[i][1:], label)
            rule.follow_labels()
            without.follow_labels()
            assert rule.value == without.value, n
        stands, rare = n > 40 and n % 60 > 40, n > 40 and n % 60 > 46
        score = float(rng.normal(scale=3.0)) + 30.0 * rare
        x = [float(n), float(n - n % 60 if stands else n)]
        one, other = rule.decide_one(seq, x, score, np.nan), without.decide_one(n, x, score, np.nan)
        assert one._replace(incident=other.incident) == other, n
        seen.append((seq, score, one.level))
        seq += 1
        if rng.random() < 0.05:
            rule, without = reloaded(rule, held_out, seq), reloaded(without, HeldOut(), n + 1)
        assert rule.value == without.value, n


# snapshots


def test_a_snapshot_of_the_version_before_goes_on_and_labels_leave_its_scores_alone():
    one = detector(2)
    one.observe(np.random.default_rng(3).normal(size=(200, 2)))
    far = one.observe(np.full((1, 2), 50.0))
    one.observe(np.zeros((3, 2)), held_out=np.ones(3, bool))
    meta, arrays = decode_snapshot(one.to_bytes(), "detector", VERSION)
    older = {name: array for name, array in arrays.items() if not name.endswith("_seqs")}
    back = Detector.from_bytes(encode_snapshot("detector", 6, meta, older))
    assert (back.n_held_out, back.threshold) == (3, one.threshold)
    start = back.state.rule.ordinary.start
    back.feedback(far.records, [True])
    one.feedback(far.records, [True])
    assert back.state.rule.ordinary.start == start != one.state.rule.ordinary.start
    assert Detector.from_bytes(back.to_bytes()).threshold == back.threshold


def test_runs_are_bounded_and_the_oldest_go():
    runs = HeldOut()
    for k in range(MOST_RUNS + 10):
        runs.add(3 * k + 1, 2)
    assert (runs.n, len(runs.state()["held_out_first"])) == (2 * (MOST_RUNS + 10), MOST_RUNS)
    assert runs.after(3 * 100) == 2 * (MOST_RUNS + 10 - 100)
    assert runs.after(3) == 2 * MOST_RUNS
    back = HeldOut.of(runs.state())
    back.add(3 * (MOST_RUNS + 10), 1)
    runs.add(3 * (MOST_RUNS + 10), 1)
    assert all(np.array_equal(array, back.state()[name]) for name, array in runs.state().items())


@pytest.mark.parametrize(
    ("first", "count"),
    [
        ([], [1]),
        ([0], [0, 1]),
        ([5], [5, 6]),
        ([5], [0, 0]),
        ([5], [2, 1]),
        ([4, 6], [0, 2, 3]),
        ([9], [0, 4]),
        ([6, 2], [0, 1, 2]),
    ],
)
def test_runs_that_cannot_be_are_not_written(first, count):
    one = detector(2)
    one.observe(np.zeros((10, 2)), held_out=np.arange(10) == 4)
    one.to_bytes()
    one.state.held_out._first, one.state.held_out._count = first, count
    with pytest.raises(InvalidState):
        one.to_bytes()
