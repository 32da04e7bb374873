"""An export with something wrong in it is refused, or as good as one that some history led to."""

import os
from functools import cache

import numpy as np
import pytest

from app.streams.changes.lifecycle import validated_import
from core import Detector, InvalidSnapshot
from tests.app.streams.maintenance.mutants import START, Mutant, exports
from tests.core.histories import Life
from tests.effort import tries

N_MUTANTS = int(os.environ.get("ITAN_TEST_MUTANTS", tries(500)))
FIRST_SEED = int(os.environ.get("ITAN_TEST_FIRST_MUTANT", "0"))
"""Look for longer with `ITAN_TEST_MUTANTS=20000`."""
GROUP = 50
LATEST = START + 1e6
SAMPLES, BATCH = 400, 100

sound = cache(exports)


def good_for_more(detector: Detector, seed: int) -> None:
    """400 more samples, and labels, are answered with finite numbers, the same to the last bit after restarts."""
    life = Life(seed, 0, detector.config)
    life.missing, life.edges, life.unit, life.twins = 0.05, 0.0, 1.0, False
    unbroken, broken = detector, Detector.from_bytes(detector.to_bytes())
    time = detector.newest_time or START
    for _ in range(SAMPLES // BATCH):
        X, times = life.values(BATCH), time + np.cumsum(life.rng.random(BATCH))
        time = float(times[-1])
        one, other = unbroken.observe(X, times), broken.observe(X, times)
        for name in ("score", "threshold", "is_anomaly"):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name
        assert np.isfinite(one.score[one.ready]).all()
        assert np.isfinite(one.threshold[one.ready]).all()
        chosen = life.rng.permutation(BATCH)[:10]
        labels = (life.rng.random(10) < 0.3).tolist()
        for model, out in ((unbroken, one), (broken, other)):
            result = model.feedback(out.records[chosen], labels)
            model.feedback(result.records[:2], [None] * 2)
        broken = Detector.from_bytes(broken.to_bytes())
    assert broken.to_bytes() == unbroken.to_bytes()


def is_refused(seed: int) -> bool:
    """Whether a mutant is refused; AssertionError if it is neither that nor good, with what was changed."""
    rng = np.random.default_rng([7, seed])
    kind = int(rng.integers(len(sound())))
    mutant = Mutant(sound()[kind], rng)
    try:
        state = validated_import(mutant.body(), LATEST)
    except InvalidSnapshot:
        return True
    except Exception as error:
        raise AssertionError(f"mutant {seed} of export {kind}, {mutant.said}: {error!r}") from error
    try:
        good_for_more(state.detector, seed)
    except Exception as error:
        raise AssertionError(f"mutant {seed} of export {kind}, {mutant.said}, was taken: {error!r}") from error
    return False


def test_the_exports_are_sound():
    for body in sound():
        state = validated_import(body, LATEST)
        assert state.to_bytes() == body
        good_for_more(state.detector, 0)


@pytest.mark.parametrize("group", range(-(-N_MUTANTS // GROUP)))
def test_a_mutant_is_refused_or_good_for_more(group):
    first = FIRST_SEED + group * GROUP
    refused = [is_refused(seed) for seed in range(first, first + GROUP)]
    assert any(refused)
    assert not all(refused)
