"""The config of a stream that a replay creates first."""

import json
from typing import Any

from app.replay.reading.columns import names_of


def config_to_create(
    text: str | None, context: str, calendar: str, timezone: str | None, timestamp_column: str | None
) -> dict[str, Any] | None:
    """Give the config of --config, with the calendar; None if no stream is to be created. Raises ValueError."""
    config = _config(text)
    if context and config and not {"features", "n_features"}.isdisjoint(config):
        raise ValueError("--context needs a --config without features: give their roles there")
    if not calendar:
        return {} if config is None and context else config
    if config and "calendar" in config:
        raise ValueError("--calendar needs a --config without a calendar")
    if timestamp_column is None:
        raise ValueError("--calendar needs --timestamp-column, the column of the times")
    return {**(config or {}), "calendar": {"periods": _periods(calendar), "timezone": timezone or "UTC"}}


def _config(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--config is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError("--config must be a JSON object")
    return config


def _periods(text: str) -> list[str | float]:
    periods: list[str | float] = []
    for name in names_of(text):
        try:
            periods.append(float(name))
        except ValueError:
            periods.append(name)
    return periods
