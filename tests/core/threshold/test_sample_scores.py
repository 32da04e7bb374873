"""Scores that know their samples, beside a plain list of them."""

from sys import getsizeof

import numpy as np
import pytest

from core.threshold.ordinary_scores import CAPACITY, OrdinaryScores
from core.threshold.sample_scores import GONE, NO_SAMPLE, SampleScores


@pytest.mark.parametrize("seed", range(3))
def test_it_is_a_queue_whose_scores_labels_set_aside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, plain, aside, seq = SampleScores(), list[tuple[int, float]](), set[int](), 0
    for step in range(6 * GONE):
        seq += int(rng.integers(1, 3))
        score = float(rng.normal())
        scores.add(seq, score)
        plain.append((seq, score))
        if rng.random() < 0.3:
            named, anomalous = int(rng.integers(max(1, seq - 30), seq + 2)), bool(rng.random() < 0.6)
            known = dict(plain)
            changes = named in known and (named in aside) != anomalous
            assert scores.label(named, anomalous=anomalous) == (known[named] if changes else None)
            if changes:
                (aside.add if anomalous else aside.remove)(named)
        if len(plain) > 20:
            first, its_score = plain.pop(0)
            assert scores.drop() == (its_score, first not in aside)
            aside.discard(first)
        if step == 4 * GONE:
            scores.renumber(1000)
            plain, aside, seq = [(s + 1000, v) for s, v in plain], {s + 1000 for s in aside}, seq + 1000
        assert (len(scores), scores.n_counted) == (len(plain), len(plain) - len(aside))
        assert scores.scores().tolist() == [score for _, score in plain]
        assert scores.seqs().tolist() == [-s if s in aside else s for s, _ in plain]
        assert scores.counted().tolist() == [score for s, score in plain if s not in aside]
        scores = SampleScores.of(scores.scores(), scores.seqs()) if step % 50 == 0 else scores


def test_scores_of_unknown_samples_stay_so() -> None:
    scores = SampleScores.of(np.arange(3.0))
    scores.add(5, 3.0)
    scores.renumber(10)
    assert scores.seqs().tolist() == [NO_SAMPLE, NO_SAMPLE, NO_SAMPLE, 15]


def test_scores_take_no_more_memory_than_numbers() -> None:
    ordinary = OrdinaryScores()
    for seq in range(1, 3 * CAPACITY):
        ordinary.add(seq, float(seq % 97))
    ring = ordinary._ring
    assert getsizeof(ring._seqs) + getsizeof(ring._scores) < 20 * CAPACITY
