"""Ranged settings: what a policy's fields may hold, and how they are read from a command line.

A setting is a dataclass field annotated with what it may be:

    full_at: Annotated[float, Range(0.0, 64.0)] = 1.5
    match: Annotated[str, OneOf("latest", "earliest")] = "latest"

The same annotation checks the value, reads its text and spans the tuner's search space.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from policies.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Range:
    """An interval that includes both ends."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"between {self.low:g} and {self.high:g}"


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """A choice among words."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def __str__(self) -> str:
        return "one of " + ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a policy: its name, default and what it may hold."""

    name: str
    kind: type
    """int, float or str."""
    optional: bool
    """Whether None (written `none`) switches it off."""
    domain: Range | OneOf
    default: Any

    def check(self, value: Any) -> None:
        """Refuse a value outside the domain.

        Raises:
            PolicyError: naming the setting, the rule and the value got.
        """
        if value is None and self.optional:
            return
        if isinstance(self.domain, OneOf):
            right = value in self.domain.words
        else:
            numeric = isinstance(value, int | float) and not isinstance(value, bool)
            if not numeric or (self.kind is int and not isinstance(value, int)):
                raise PolicyError(f"{self.name} must be {self._noun()} (got {value!r})")
            right = self.domain.low <= value <= self.domain.high
        if not right:
            raise PolicyError(f"{self.name} must be {self.domain} (got {_shown(value)})")

    def read(self, text: str) -> int | float | str | None:
        """Read a value typed by a user, such as `1.75`, `earliest` or `none`.

        Raises:
            PolicyError: when the text is no value of this setting.
        """
        if self.optional and text.lower() == "none":
            return None
        if isinstance(self.domain, OneOf):
            value: int | float | str = text
        else:
            try:
                if "_" in text or not text.isascii():
                    raise ValueError
                value = int(text) if self.kind is int else float(text)
            except ValueError:
                raise PolicyError(f"{self.name} must be {self._noun()} (got {text!r})") from None
        self.check(value)
        return value

    def _noun(self) -> str:
        noun = "a whole number" if self.kind is int else "a number"
        return f"{noun} or none" if self.optional else noun


def settings_of(policy_class: type) -> Mapping[str, Setting]:
    """Return the settings of a policy class by name, in the order they are declared."""
    hints = get_type_hints(policy_class, include_extras=True)
    found = {}
    for field in fields(policy_class):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{policy_class.__name__}.{field.name} has no range")
        inner, domain = get_args(hint)
        kinds = get_args(inner) or (inner,)
        optional = type(None) in kinds
        kind = next(kind for kind in kinds if kind is not type(None))
        found[field.name] = Setting(field.name, kind, optional, domain, field.default)
    return found


def near(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known word closest to a mistyped one, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
