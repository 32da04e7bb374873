"""The kinds of range that a field may have: each checks a value, and describes itself as a JSON Schema.

A check returns the value, or raises InvalidConfig with field, value and limit.
"""

from dataclasses import dataclass
from typing import Any

from core.errors import InvalidConfig


class OneOf:
    """One of a few words."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed

    def __call__(self, field: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.allowed:
            raise InvalidConfig(field, value, "one of " + ", ".join(self.allowed))
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        return {"type": "string", "enum": list(self.allowed)}


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range."""

    low: int
    high: int

    def __call__(self, field: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise InvalidConfig(field, value, f"a whole number from {self.low} to {self.high}")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range, or `above` its lower end."""

    low: float
    high: float
    above: bool = False

    def __call__(self, field: str, value: Any) -> float:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric or not self.low <= value <= self.high or (self.above and value == self.low):
            word = "above" if self.above else "from"
            raise InvalidConfig(field, value, f"a number {word} {self.low:g} to {self.high:g}")
        return float(value)

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        return {"type": "number", "exclusiveMinimum" if self.above else "minimum": self.low, "maximum": self.high}


class Flag:
    """True or false."""

    def __call__(self, field: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidConfig(field, value, "true or false")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Name:
    """Printable characters, not too many."""

    longest: int

    def __call__(self, field: str, value: Any) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= self.longest or not value.isprintable():
            raise InvalidConfig(field, value, f"1 to {self.longest} printable characters")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        return {"type": "string", "minLength": 1, "maxLength": self.longest, "description": "printable characters"}
