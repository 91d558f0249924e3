"""One setting as a direction to search in: the values it may take, and how an Optuna trial draws one.

A wide range is searched on a logarithmic scale, where 2 is as far from 4 as 32 is from 64; where it starts at 0, what
is drawn is the value plus one, and the parameter's name says so. Numbers are rounded to three significant digits, so
that what is evaluated is what is printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import optuna

from policies import Range
from policies.settings import Setting

Value: TypeAlias = "int | float | str | None"

WIDE = 16
"""How many times its low end a range's high end must be to be searched on a logarithmic scale."""
LEVELS = 5
"""Values of a range in a grid, unless it has fewer."""
NEIGHBOURS = (1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""How far from a value its neighbours on a curve are, as shares of the range on its scale."""


@dataclass(frozen=True)
class Dimension:
    """The values that the search may give one setting."""

    setting: Setting
    low: float = 0
    high: float = 0
    choices: tuple[Value, ...] = ()
    """The only values, in the order they are tried in; empty for everything from `low` to `high`."""
    optional: bool = False
    """Whether None is a value too, beside those of the range."""

    @property
    def name(self) -> str:
        """The setting's name."""
        return self.setting.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """What a trial calls its parameters."""
        return (self._parameter, *([self._switch] if self.optional else []))

    def draw(self, trial: optuna.trial.BaseTrial) -> Value:
        """Draw a value."""
        if self.choices:
            found: Value = trial.suggest_categorical(self.name, self.choices)
            return found
        if self.setting.kind is int:
            raw: float = trial.suggest_int(
                self._parameter, int(self.low) + self._shift, int(self.high) + self._shift, log=self._log
            )
        else:
            raw = trial.suggest_float(self._parameter, self.low + self._shift, self.high + self._shift, log=self._log)
        if self.optional and trial.suggest_categorical(self._switch, ["no", "yes"]) == "no":
            return None
        return self._value(raw)

    def drawn(self, value: Value) -> dict[str, Any] | None:
        """Return the parameters of a trial that draws a value; None where none does."""
        if self.choices:
            return {self.name: value} if value in self.choices else None
        if value is None:
            return {self._parameter: self._raw(self.levels[0]), self._switch: "no"} if self.optional else None
        if isinstance(value, str) or not self.low <= value <= self.high:
            return None
        return {self._parameter: self._raw(value)} | ({self._switch: "yes"} if self.optional else {})

    @property
    def levels(self) -> tuple[float, ...]:
        """The values of a grid: all of a short range, else some that stand equally far apart on its scale."""
        low, high = self.low + self._shift, self.high + self._shift
        count = min(LEVELS, int(high - low) + 1) if self.setting.kind is int else LEVELS
        if count == 1:
            return (self._value(low),)
        steps = [place / (count - 1) for place in range(count)]
        raws = [low * (high / low) ** step if self._log else low + (high - low) * step for step in steps]
        return tuple(dict.fromkeys(self._value(raw) for raw in raws))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers among the choices, or both ends of the range."""
        if self.choices:
            return tuple(one for one in self.choices if isinstance(one, int | float))
        return self._value(self.low + self._shift), self._value(self.high + self._shift)

    def around(self, value: Value) -> tuple[Value, ...]:
        """Return values on both sides of one, further and further apart on the scale, with that one among them."""
        if self.choices or isinstance(value, str):
            return self.choices
        if value is None:
            return (None, *self.levels)
        low, high = self.low + self._shift, self.high + self._shift
        raw = value + self._shift
        span = math.log(high / low) if self._log else high - low
        steps = [0.0, *(sign * share * span for share in NEIGHBOURS for sign in (-1, 1))]
        raws = [raw * math.exp(step) if self._log else raw + step for step in steps[1:]]
        near = {self._value(min(max(one, low), high)) for one in raws} | {value}
        return (*([None] if self.optional else []), *sorted(near))

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The values of each parameter in a grid."""
        if self.choices:
            return {self.name: list(self.choices)}
        found: dict[str, list[Any]] = {self._parameter: [self._raw(level) for level in self.levels]}
        return found | ({self._switch: ["no", "yes"]} if self.optional else {})

    def document(self) -> dict[str, Any]:
        """Return what the dimension is, as plain values."""
        if self.choices:
            return {"values": list(self.choices)}
        return {"low": float(self.low), "high": float(self.high), "none": self.optional}

    def __str__(self) -> str:
        """Write the values as `--range` takes them."""
        if self.choices:
            return ",".join(shown(choice) for choice in self.choices)
        return f"{self.low:g}..{self.high:g}{' or none' if self.optional else ''}"

    @property
    def _log(self) -> bool:
        return self.high + self._shift >= WIDE * (self.low + self._shift)

    @property
    def _shift(self) -> int:
        return int(self.low == 0)

    @property
    def _parameter(self) -> str:
        return f"{self.name} + 1" if not self.choices and self._shift else self.name

    @property
    def _switch(self) -> str:
        return f"{self.name} used"

    def _raw(self, value: float) -> float:
        raw = value + self._shift
        return int(raw) if self.setting.kind is int else float(raw)

    def _value(self, raw: float) -> float:
        if self.setting.kind is int:
            return round(raw) - self._shift
        return min(max(rounded(raw - self._shift), self.low), self.high)


def full(setting: Setting) -> Dimension:
    """Return everything that a setting may hold."""
    if isinstance(setting.domain, Range):
        return Dimension(setting, setting.domain.low, setting.domain.high, optional=setting.optional)
    return Dimension(setting, choices=setting.domain.words)


def listed(setting: Setting, values: Sequence[Value]) -> Dimension:
    """Return some values of a setting."""
    return Dimension(setting, choices=tuple(values))


def rounded(value: float) -> float:
    """Round to three significant digits.

    >>> rounded(1.73829), rounded(0.0), rounded(23.456)
    (1.74, 0.0, 23.5)
    """
    return round(value, 2 - math.floor(math.log10(abs(value)))) if value else 0.0


def shown(value: Value) -> str:
    """Write a value as a command line takes it.

    >>> shown(None), shown(1.5), shown("latest")
    ('none', '1.5', 'latest')
    """
    return "none" if value is None else str(value)
