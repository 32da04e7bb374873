"""A restart changes nothing: a detector saved and loaded after every event says what one says that never stopped."""

import os

import numpy as np
import pytest

from core import Detector
from tests.core.histories import Life, is_finite, same
from tests.core.samples import detector

N_LIVES = int(os.environ.get("ITAN_TEST_HISTORIES", "24"))
N_EVENTS = int(os.environ.get("ITAN_TEST_HISTORY_EVENTS", "50"))
"""Set both higher to look for longer: `ITAN_TEST_HISTORIES=2000 ITAN_TEST_HISTORY_EVENTS=200`."""


def restarted(detector: Detector) -> Detector:
    """The detector that comes back from a snapshot, which is the same again when it is saved."""
    blob = detector.to_bytes()
    back = Detector.from_bytes(blob)
    assert back.to_bytes() == blob
    return back


def live_through(life: Life) -> None:
    unbroken, broken = Detector(life.config), Detector(life.config)
    records: tuple[list, list] = [], []
    for t, event in enumerate(life.events()):
        expected, got = event(unbroken, records[0]), event(broken, records[1])
        assert same(expected, got), (life.config, t)
        assert is_finite(got, broken), (life.config, t)
        broken = restarted(broken)
    assert broken.to_bytes() == unbroken.to_bytes()


@pytest.mark.parametrize("seed", range(N_LIVES))
def test_a_snapshot_after_every_event_changes_nothing(seed):
    live_through(Life(seed, N_EVENTS))


def labelled_outlier(*, cut: bool) -> np.ndarray:
    """Scores after 400 labelled normals, an odd one among those that the second model learns next, and 20 more."""
    rng = np.random.default_rng(0)
    model = detector(2)
    X = rng.normal(size=(900, 2))
    X[300:] += np.where(rng.random((600, 1)) < 0.5, 20, 0)
    out = model.observe(X).records
    near = np.flatnonzero(X[:, 0] < 5)
    model.feedback(out[near[:400]], [False] * 400)
    model.feedback(model.observe([[25.0, 25.0]]).records, [False])
    if cut:
        model = restarted(model)
    model.feedback(out[near[400:420]], [False] * 20)
    return model.observe(rng.normal(size=(300, 2))).score


def test_an_outlier_labelled_normal_is_drawn_in_once():
    """It lies pending as the first model learned it; loading it by another look drew it in a second time."""
    assert np.array_equal(labelled_outlier(cut=True), labelled_outlier(cut=False))
