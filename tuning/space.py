"""The search space of a policy: its ranged settings, less what a command line fixes and what has no cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna

import policies
from policies import LookupPolicy, Policy, PolicyError, Range, near, settings_of
from policies.settings import Setting
from tuning.dimension import Dimension, Value, full, listed, shown
from tuning.errors import TuningError


@dataclass(frozen=True)
class Space:
    """What a search may set, and what it may not."""

    shipped: Policy
    """The policy with its shipped constants, but for blocks that there are no costs of."""
    dimensions: tuple[Dimension, ...]
    """The settings that are searched."""
    fixed: Mapping[str, Value]
    """Settings that the command line gave a value."""
    notes: tuple[str, ...] = ()
    """How the space was narrowed by what is not on the command line."""

    def draw(self, trial: optuna.trial.BaseTrial) -> dict[str, Value]:
        """Draw a value of every searched setting."""
        return self.possible({dimension.name: dimension.draw(trial) for dimension in self.dimensions})

    def policy(self, settings: Mapping[str, Value]) -> Policy:
        """Return the policy with these settings, the fixed ones, and its defaults for the rest.

        Raises:
            PolicyError: the policy takes no such combination.
        """
        chosen: dict[str, Any] = {**self.fixed, **settings}
        return self.kind(**chosen)

    @property
    def kind(self) -> type[Policy]:
        """The policy's class."""
        return type(self.shipped)

    @property
    def defaults(self) -> dict[str, Value]:
        """The shipped value of every searched setting."""
        return {dimension.name: self.shipped.settings[dimension.name] for dimension in self.dimensions}

    @property
    def roomiest(self) -> dict[str, Value]:
        """The shipped values, but the ends of the suffix as far apart as they can be: where that is refused, all is."""
        found = {one.name: one.numbers for one in self.dimensions}
        ends = {name: end(found[name]) for name, end in (("ngram_min", min), ("ngram_max", max)) if name in found}
        return {**self.defaults, **ends}

    @property
    def reachable(self) -> dict[str, Value]:
        """The shipped values that the space holds."""
        found = {one.name: one for one in self.dimensions}
        return {name: value for name, value in self.defaults.items() if found[name].drawn(value) is not None}

    def drawn(self, settings: Mapping[str, Value]) -> dict[str, Any] | None:
        """Return the parameters of a trial that draws these settings; None where none does."""
        found: dict[str, Any] = {}
        for dimension in self.dimensions:
            parameters = dimension.drawn(settings[dimension.name])
            if parameters is None:
                return None
            found |= parameters
        return found

    @property
    def grid(self) -> dict[str, list[Any]]:
        """The values of each parameter in a grid."""
        return {name: values for dimension in self.dimensions for name, values in dimension.grid.items()}

    def possible(self, settings: dict[str, Value]) -> dict[str, Value]:
        """Mend the two ends of the suffix, where the space allows it: half of all draws would be refused otherwise."""
        both = {**self.fixed, **settings}
        least, most = both.get("ngram_min"), both.get("ngram_max")
        if not (isinstance(least, int) and isinstance(most, int) and most < least):
            return settings
        searched = {dimension.name: dimension for dimension in self.dimensions}
        for name, value in (("ngram_max", least), ("ngram_min", most)):
            if name in searched and searched[name].drawn(value) is not None:
                return {**settings, name: value}
        return settings

    def document(self) -> dict[str, Any]:
        """Return the space as plain values, of which its digest is made."""
        return {
            "policy": self.shipped.name,
            "searched": {dimension.name: dimension.document() for dimension in self.dimensions},
            "fixed": dict(self.fixed),
            "shipped": dict(self.shipped.settings),
        }


def space(name: str, fixes: Sequence[str], ranges: Sequence[str], widest: int) -> Space:
    """Return the search space of a policy.

    Args:
        name: of the policy.
        fixes: texts of the form NAME=VALUE.
        ranges: texts of the form NAME=LOW..HIGH or NAME=VALUE,VALUE,....
        widest: the widest verify that every profile has a cost of, with all narrower ones.

    Raises:
        PolicyError: no such policy or setting, or a value that the setting does not take.
        TuningError: nothing is left to search, or a range that is none.
    """
    kinds = policies.policy_classes()
    if name not in kinds:
        raise PolicyError(f"no policy named {name!r} (have: {', '.join(sorted(kinds))}){near(name, kinds)}")
    kind = kinds[name]
    known = settings_of(kind)
    fixed_texts = _known(policies.assignments(fixes, where="--fix"), known, name, "--fix")
    range_texts = _known(policies.assignments(ranges, where="--range"), known, name, "--range")
    for both in fixed_texts.keys() & range_texts.keys():
        raise TuningError(f"--range {both}: is fixed too (--fix {both}={fixed_texts[both]})")
    fixed = {key: known[key].read(text) for key, text in fixed_texts.items()}
    dimensions = []
    notes: list[str] = []
    for key, setting in known.items():
        if key in fixed:
            continue
        dimension = _narrowed(setting, range_texts[key]) if key in range_texts else full(setting)
        if key == "max_draft" and issubclass(kind, LookupPolicy) and not dimension.choices:
            dimension = _priced(dimension, widest, notes)
        dimensions.append(dimension)
    shipped = kind()
    if isinstance(shipped, LookupPolicy) and shipped.max_draft > widest - 1:
        shipped = replace(shipped, max_draft=widest - 1)
        notes.append(f"the shipped constants are held to blocks of {widest - 1} too")
    if not dimensions or name == "plain":
        raise TuningError(f"policy {name!r} has nothing to search (settings: {', '.join(known)}; all fixed or idle)")
    return Space(shipped, tuple(dimensions), fixed, tuple(notes))


def _known(texts: dict[str, str], known: Mapping[str, Setting], policy: str, option: str) -> dict[str, str]:
    for key in texts:
        if key not in known:
            raise PolicyError(
                f"{option} {key}: policy {policy!r} has no such setting "
                f"(settings: {', '.join(known)}){near(key, known)}"
            )
    return texts


def _narrowed(setting: Setting, text: str) -> Dimension:
    low, dots, high = text.partition("..")
    if not dots:
        values = [setting.read(part.strip()) for part in text.split(",")]
        if len(set(values)) < 2:
            raise TuningError(f"--range {setting.name}: one value is no range (got {text!r}); use --fix")
        return listed(setting, values)
    if not isinstance(setting.domain, Range):
        raise TuningError(
            f"--range {setting.name}: must be words, as in {','.join(setting.domain.words)} (got {text!r})"
        )
    ends = [setting.read(part.strip()) for part in (low, high)]
    if not all(isinstance(end, int | float) for end in ends):
        raise TuningError(f"--range {setting.name}: must be LOW..HIGH or values (got {text!r})")
    first, last = (float(str(end)) for end in ends)
    if first >= last:
        raise TuningError(f"--range {setting.name}: the low end must be below the high one (got {text!r})")
    return Dimension(setting, first, last)


def _priced(dimension: Dimension, widest: int, notes: list[str]) -> Dimension:
    most = widest - 1
    if dimension.high <= most:
        return dimension
    if dimension.low > most:
        raise TuningError(
            f"max_draft: {dimension} needs verifies of width {dimension.low + 1:g} and wider, and the profiles have "
            f"costs of widths up to {widest}"
        )
    notes.append(f"max_draft is searched up to {most}: the profiles have costs of widths up to {widest}")
    return replace(dimension, high=most)


def changed(settings: Mapping[str, Value], kind: type[Policy]) -> dict[str, Value]:
    """Return the settings that are not the policy's defaults."""
    known = settings_of(kind)
    return {name: value for name, value in settings.items() if value != known[name].default}


def set_line(settings: Mapping[str, Value]) -> str:
    """Write settings as a command line takes them.

    >>> set_line({"full_at": 1.75, "narrow": 3})
    '--set full_at=1.75 --set narrow=3'
    """
    return " ".join(f"--set {name}={shown(value)}" for name, value in settings.items())
