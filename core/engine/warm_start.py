"""A new state that begins with the model of another, which counts as many samples as the caller says."""

from core.config import DetectorConfig
from core.config.changes import changed
from core.decision.held_out import HeldOut
from core.decision.rule import DecisionRule
from core.engine.reconfigure import refuse_fewer_nodes
from core.engine.scales import settle
from core.engine.state import DetectorState
from core.errors import InvalidConfig, NotReady


def warm_started(config: DetectorConfig, source: DetectorState, n_samples: int, first_seq: int) -> DetectorState:
    """Give the state of a new detector with the model of another one, which stays as it is.

    What the model has counted loses weight, as by forgetting, until the root counts n_samples, at least one; as many of
    the newest ordinary scores say how rare a score is. Neither samples nor labels come along.

    Raises NotReady if the other one is still warming up, and InvalidConfig if its model does not fit the config.
    """
    config = _fitting(config, source)
    before = DetectorState.from_bytes(source.to_bytes())
    before.density.end_round()
    settle(before)
    refuse_fewer_nodes(before, config)
    before.density.begin_warm(n_samples)
    rule = DecisionRule(config, before.volume)
    rule.begin_warm(before.rule, n_samples, first_seq - 1)
    state = DetectorState(config, first_seq=first_seq)
    state.is_warm = True
    before.held_out = HeldOut()
    arrays = before.state() | state.resemblance.state() | state.costs.state() | rule.state()
    state.check(arrays)
    state.load(arrays)
    return state


def _fitting(config: DetectorConfig, source: DetectorState) -> DetectorConfig:
    """Give the config with its features in the order of the model. Raises NotReady or InvalidConfig."""
    if not source.ready:
        raise NotReady(source.samples_needed)
    if config.profile == "paper":
        raise InvalidConfig("profile", config.profile, "'default' for a stream that starts warm")
    config = config.ordered_as(source.config)
    if config.features is not None and source.config.features is not None:
        given, names = ([feature.name for feature in one.features or ()] for one in (config, source.config))
        if given != names:
            raise InvalidConfig("features", ", ".join(given), f"those of the model, {', '.join(names)}")
    changed(source.config, config.to_dict())
    return config
