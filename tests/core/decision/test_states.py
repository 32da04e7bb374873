"""States of decision rules: one that no history leads to is refused."""

import numpy as np
import pytest

from core.bounds import check_bounds
from core.errors import InvalidSnapshot
from core.threshold.recent_scores import WINDOW
from tests.core.decision.rules import SCORES, Rule, labelled, rule_of

STATES = [
    ("ordinary_scores", lambda a: a[:-1]),
    ("ordinary_scores", lambda a: np.append(a, 1.0)),
    ("ordinary_scores", lambda a: np.where(a == a[3], np.nan, a)),
    ("ordinary_seqs", lambda a: a[:-1]),
    ("ordinary_seqs", lambda a: a[::-1]),
    ("ordinary_seqs", lambda a: a + 10_000),
    ("ordinary_seqs", lambda a: np.where(a == a[3], a[2], a)),
    ("ordinary_count", lambda a: a - 2),
    ("ordinary_count", lambda a: a * 0 - 1),
    ("ordinary_tail", lambda a: a * [1, 0]),
    ("ordinary_tail", lambda a: a * np.nan),
    ("threshold_clock", lambda a: a * 0),
    ("threshold_labels", lambda a: np.concatenate([a[:, :1], a[:, :-1]], 1)),
    ("threshold_labels", lambda a: a[:, ::-1]),
    ("threshold_labels", lambda a: a * [[1], [0], [1]]),
    ("threshold_scores", lambda a: a[:-1]),
    ("threshold_scores", lambda a: a * np.inf),
    ("level_recent", lambda a: np.append(a, 1.0)),
    ("level_recent", lambda a: a * np.nan),
    ("level_oldest", lambda a: a + WINDOW),
    ("level_oldest", lambda a: a - 1000),
    ("incident", lambda a: a * [0, 1, 1, 1, 1, 1, 1, 1]),
    ("incident", lambda a: np.add(a, [0, 10_000, 0, 0, 0, 0, 0, 0])),
    ("incident", lambda a: np.add(a, [0, 0, 1, 0, 0, 0, 0, 0])),
    ("incident", lambda a: np.add(a, [0, 0, 0, 1, 0, 0, 0, 0])),
    ("incident", lambda a: np.add(a, [0, 0, 0, 0, 1, 0, 0, 0])),
    ("incident", lambda a: np.add(a, [0, 0, 0, 0, 0, 8, 0, 0])),
    ("incident", lambda a: np.add(a, [0, 0, 0, 0, 0, 0, -1, 0])),
    ("incident", lambda a: a * [1, 0, 1, 1, 1, 1, 1, 1]),
    ("incident", lambda a: np.add(a, [0, 0, 0, 0, 0, 0, 0, -1])),
    ("incident", lambda a: np.add(a, [0, 0, 0, 0, 0, 0, 0, 1000])),
    ("incident_scores", lambda a: a[:-1]),
    ("incident_scores", lambda a: np.append(a[0] - 1, a[1:])),
    ("incident_seqs", lambda a: a[:-1]),
    ("incident_seqs", lambda a: a + 10_000),
    ("incident_time", lambda a: np.full(1, np.inf)),
    ("settling_scores", lambda a: np.zeros(30)),
    ("settling_seqs", lambda a: np.ones(1, int)),
    ("settling_calm", lambda a: a + 3),
    ("still_lasting", lambda a: a * 0 - 1),
    ("still_ordinary", lambda a: a * 0),
    ("still_value", lambda a: a * 0 + np.inf),
    ("still_value", lambda a: np.append(a, 1.0)),
]


@pytest.fixture(scope="module")
def rule() -> Rule:
    """With labels, scores above a level, and an open incident."""
    rule = rule_of("weighted", drift_relative=True)
    labelled(rule, SCORES[:40], -1)
    rule.pass_by(np.concatenate([SCORES, SCORES[:30], SCORES[:3] + 100]))
    assert rule.incidents.id
    return rule


@pytest.mark.parametrize(("name", "change"), STATES)
def test_a_state_that_no_history_leads_to_is_refused(rule, name, change):
    state = rule.state()
    checked(rule, state)
    with pytest.raises(InvalidSnapshot):
        checked(rule, state | {name: change(state[name])})


def checked(rule: Rule, state: dict[str, np.ndarray]) -> None:
    check_bounds(state)
    rule_of("weighted", drift_relative=True).check(state, rule.n_decided + 1)


def test_an_open_incident_without_a_flagged_sample_is_refused(rule):
    state = rule.state()
    nobody = state | {"incident": state["incident"] * [1, 1, 0, 0, 0, 1, 1, 1], "incident_scores": np.zeros(1)}
    with pytest.raises(InvalidSnapshot):
        checked(rule, nobody)
