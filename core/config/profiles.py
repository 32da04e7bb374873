"""The profiles: the values of fields that a config leaves out."""

from typing import Any, Final

PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {
        "learn_from": "all",
        "scaling": "auto",
        "mixture": "tree",
        "split": "evidence",
        "beta": 1.2,
        "xi": 0.2,
        "prior_count": 1.0,
        "round_growth": 0.01,
        "max_round": 512,
        "max_nodes": 127,
        "threshold": "weighted",
    },
    "paper": {
        "learn_from": "labelled_normal",
        "scaling": "none",
        "mixture": "eg",
        "split": "scheduled",
        "beta": 2.0,
        "xi": 0.8,
        "prior_count": 0.1,
        "round_growth": 0.0,
        "max_round": 256,
        "max_nodes": 1023,
        "threshold": "ogd",
    },
}
