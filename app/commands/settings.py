"""What a command says of settings that it cannot use."""

from collections.abc import Container


def reason(error: ValueError, flags: Container[object] = ()) -> str:
    """Say in one line which settings are refused, and why; flags are the settings that were given as such."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    # the values stay out of it: one of them may be a key
    return "; ".join(f"{_source(e['loc'][0], flags)}: {e['msg']}" for e in error.errors(include_input=False))


def _source(setting: int | str, flags: Container[object]) -> str:
    """Name a setting as the user gave it."""
    return f"--{setting}".replace("_", "-") if setting in flags else f"ITAN_{setting}".upper()
