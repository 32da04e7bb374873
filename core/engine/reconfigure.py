"""Another config for a state that has learned: what follows from each field that can change."""

from collections.abc import Mapping
from typing import Any, Final

from core.config import DetectorConfig
from core.config.changes import changed
from core.decision.rule import DecisionRule
from core.engine.scales import settle
from core.engine.state import DetectorState
from core.errors import InvalidConfig

OF_ROUNDS: Final = ("half_life_samples", "half_life_seconds", "round_growth", "max_round")
"""Fields by which a round is learned: those of the round under way are learned by the config before."""


def reconfigured(state: DetectorState, changes: Mapping[str, Any]) -> DetectorState:
    """Give the state as it goes on with some fields of its config changed; the one given stays as it is.

    Raises InvalidConfig for a field that cannot change. The result depends on the state as a snapshot has it and on the
    changes alone.
    """
    config = changed(state.config, changes)
    if config == state.config:
        return state
    before = DetectorState.from_bytes(state.to_bytes())
    if any(getattr(config, field) != getattr(state.config, field) for field in OF_ROUNDS):
        before.density.end_round()
        if before.ready:
            settle(before)
    refuse_fewer_nodes(before, config)
    return _with_config(before, config)


def refuse_fewer_nodes(state: DetectorState, config: DetectorConfig) -> None:
    """Raise InvalidConfig if the config does not allow the nodes of a state."""
    n_nodes = state.density.tree.n_nodes
    if config.max_nodes < n_nodes:
        raise InvalidConfig("max_nodes", config.max_nodes, f"at least {n_nodes}, the nodes that the tree has")


def _with_config(before: DetectorState, config: DetectorConfig) -> DetectorState:
    """Give a state of this config that goes on from one that is not used any more."""
    state = DetectorState(config, first_seq=before.first_seq)
    state.next_seq, state.warmup, state.is_warm = before.next_seq, before.warmup, before.is_warm
    state.density.forgetting.follow(before.density.forgetting)
    arrays = before.state() | state.density.forgetting.state()
    if before.ready:
        rule = DecisionRule(config, before.volume, before.held_out)
        rule.adopt(before.rule)
        arrays |= rule.state()
    state.check(arrays)
    state.load(arrays)
    return state
