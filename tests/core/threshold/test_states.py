"""States of rules: a state that no rule writes is refused."""

import numpy as np
import pytest

from core.bounds import check_bounds
from core.errors import InvalidSnapshot
from core.threshold.recent_scores import WINDOW
from tests.core.threshold.rules import SCORES, labelled, rule_of

STATES = [
    ("threshold_recent", lambda a: a[:-1]),
    ("threshold_recent", lambda a: np.append(a, 1.0)),
    ("threshold_recent", lambda a: np.where(a == a[3], np.nan, a)),
    ("threshold_progress", lambda a: a - [1, 0, 0]),
    ("threshold_progress", lambda a: a * [1, 0, 1] + [0, WINDOW, 0]),
    ("threshold_progress", lambda a: a * [1, 1, 0]),
    ("threshold_labels", lambda a: np.concatenate([a[:, :1], a[:, :-1]], 1)),
    ("threshold_labels", lambda a: a[:, ::-1]),
    ("threshold_labels", lambda a: a * [[1], [0], [1]]),
    ("threshold_scores", lambda a: a[:-1]),
    ("threshold_scores", lambda a: a * np.inf),
    ("level_recent", lambda a: np.append(a, 1.0)),
    ("level_recent", lambda a: a * np.nan),
    ("level_oldest", lambda a: a + WINDOW),
    ("level_oldest", lambda a: a - 1000),
]


@pytest.mark.parametrize(("name", "change"), STATES)
def test_a_state_that_no_rule_writes_is_refused(name, change):
    rule = rule_of("weighted", drift_relative=True)
    labelled(rule, SCORES[:40], -1)
    rule.pass_by(np.concatenate([SCORES, SCORES[:30]]))
    state = rule.state()
    checked(state)
    with pytest.raises(InvalidSnapshot):
        checked(state | {name: change(state[name])})


def checked(state: dict[str, np.ndarray]) -> None:
    check_bounds(state)
    rule_of("weighted", drift_relative=True).check(state)
