"""What the paper prints (its tables' rows): log-loss, AUC, milliseconds for the whole stream."""

from typing import Final, NamedTuple


class Published(NamedTuple):
    """One row of one of the paper's tables."""

    log_loss: float
    auc: float
    milliseconds: int


PUBLISHED: Final[dict[str, dict[str, Published]]] = {
    "exp. 1": {
        "ITAN": Published(2.174, 0.828, 313),
        "wGMM": Published(3.056, 0.839, 2276),
        "wKDE": Published(3.022, 0.568, 273),
        "ML": Published(3.087, 0.270, 39),
    },
    "exp. 2": {
        "ITAN": Published(0.833, 0.796, 316),
        "wGMM": Published(1.303, 0.738, 7168),
        "wKDE": Published(1.455, 0.686, 283),
        "ML": Published(1.337, 0.686, 35),
    },
    "exp. 3": {
        "ITAN": Published(3.507, 0.748, 466),
        "wGMM": Published(6.346, 0.568, 4647),
        "wKDE": Published(7.684, 0.480, 277),
        "ML": Published(4.702, 0.681, 35),
    },
}


def published(experiment: str, model: str) -> Published | None:
    """The paper's row for one of our models, or None if it has none; its ITAN stands beside our paper profile, eg."""
    return PUBLISHED[experiment].get("ITAN" if model == "ITAN paper, eg" else model)
