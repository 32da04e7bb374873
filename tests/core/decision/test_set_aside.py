"""Scores that labels set aside stay so wherever they wait, and under whatever numbers."""

from copy import deepcopy

import numpy as np
import pytest

from tests.core.decision.rules import SCORES, Rule, rule_of

SHIFT = 100
PLACES = ["ordinary_seqs", "incident_seqs", "settling_seqs"]
FAR = 100.0 + np.arange(30.0)


def ordinary() -> Rule:
    """Nothing but ordinary samples, some of them from before their numbers were known."""
    rule = rule_of("weighted")
    rule.begin_again(SCORES[:40])
    rule.pass_by(SCORES[:30])
    assert 0 in rule.state()["ordinary_seqs"]
    return rule


def in_incident(n: int = 5) -> Rule:
    """An incident of n samples is open."""
    rule = rule_of("weighted", incident_accept_samples=1_000)
    rule.pass_by(np.concatenate([SCORES, FAR[:n]]))
    assert rule.incidents.n_flagged == n
    return rule


def settling() -> Rule:
    """An incident of five samples was accepted, and the new normal is not known yet."""
    rule = rule_of("weighted", incident_accept_samples=5)
    rule.pass_by(np.concatenate([SCORES, FAR[:5]]))
    assert len(rule._settling.scores) == 5
    return rule


def label(rule: Rule, seqs: list[int], shift: int = 0) -> None:
    for seq in seqs:
        rule.label(seq + shift, 5.0, 0.0, 1)
    rule.follow_labels()


@pytest.mark.parametrize(
    ("made", "place", "seqs"),
    [
        (ordinary, "ordinary_seqs", [10, 25, 26]),
        (in_incident, "incident_seqs", [600, 1002, 1004]),
        (settling, "settling_seqs", [600, 1002, 1004]),
    ],
)
def test_numbers_anew_change_neither_what_is_set_aside_nor_what_can_be(made, place, seqs):
    before = made()
    after = deepcopy(before)
    label(before, seqs)
    labelled = before.state()
    assert set(-labelled[place][labelled[place] < 0]) & set(seqs)
    before.renumber(SHIFT)
    after.renumber(SHIFT)
    label(after, seqs, SHIFT)
    for name, array in before.state().items():
        assert np.array_equal(array, after.state()[name], equal_nan=True), name
    for name in PLACES:
        old = labelled[name]
        assert np.array_equal(before.state()[name], np.sign(old) * (np.abs(old) + SHIFT)), name


def test_what_is_gathered_of_a_new_normal_begins_without_what_a_label_set_aside():
    rule = settling()
    label(rule, [1002])
    rule.pass_by(np.full(15, FAR[4]))
    assert (rule.ordinary.newest(100).tolist(), -1002 in rule.state()["ordinary_seqs"]) == (
        [*FAR[[0, 2, 3, 4]], *[FAR[4]] * 15],
        True,
    )


def test_a_dismissed_incident_is_the_new_normal_without_what_a_label_set_aside():
    rule = in_incident(25)
    label(rule, [1010])
    for vote in [1] + [-1] * 11:
        rule.incidents.label(vote, 0, flagged=True)
    rule.pass_by(FAR[:1])
    assert rule.ordinary.newest(100).tolist() == [*FAR[5:9], *FAR[10:25], FAR[0]]


def test_a_warm_start_takes_nothing_that_a_label_set_aside():
    rule, new = ordinary(), rule_of("weighted")
    label(rule, [30])
    new.begin_warm(rule, 3, 0)
    assert new.ordinary.newest(100).tolist() == SCORES[26:29].tolist()
