"""What is kept of labelled scores, against a plain list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.threshold import labelled_scores
from core.threshold.labelled_scores import HALF_LIFE_LABELS, LabelledScores
from tests.effort import tries

MOVES = st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 3).map(float) | st.floats(-5, 5), st.sampled_from([-1, 0, 1])),
    max_size=60,
)


@given(MOVES, st.integers(1, 6))
@settings(max_examples=tries(60), deadline=None)
def test_labelled_scores_equal_a_plain_list(moves, capacity):
    kept, plain, n_labels = LabelledScores(), [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labelled_scores, "CAPACITY", capacity)
        for seq, score, label in moves:
            kept.put(seq, score, label)
            plain = [row for row in plain if row[0] != seq]
            if label:
                plain = [*plain, (seq, score, label, n_labels)][-capacity:]
                n_labels += 1
    assert kept.seqs == [seq for seq, *_ in plain]
    ordered = sorted(plain, key=lambda row: row[1])
    score, step = kept.steps(3.0, 0.5)
    assert score.tolist() == [row[1] for row in ordered]
    age = [0.5 ** ((n_labels - 1 - clock) / HALF_LIFE_LABELS) for *_, clock in ordered]
    assert step == pytest.approx([a * (3.0 if row[2] > 0 else -0.5) for a, row in zip(age, ordered, strict=True)])
