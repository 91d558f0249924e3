"""The policies there are: every module here that defines a `Policy` is one, and its file name is its name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from policies.errors import PolicyError
from policies.policy import LookupPolicy, Policy
from policies.settings import near, settings_of


@cache
def policy_classes() -> Mapping[str, type[Policy]]:
    """Return the class of every policy by name, sorted."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for member in vars(importlib.import_module(f"policies.{module.name}")).values():
            if inspect.isclass(member) and issubclass(member, Policy) and member not in (Policy, LookupPolicy):
                found[member.__module__.rpartition(".")[2]] = member
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Return the names of all policies, sorted."""
    return list(policy_classes())


def load(
    text: str, settings: Mapping[str, str] | None = None, also: Mapping[str, type[Policy]] | None = None
) -> Policy:
    """Make a policy from a command line's words.

    Args:
        text: a name, or a name with settings of its own, as in `gated:full_at=1.75,narrow=3`; these win.
        settings: further settings by name, each taken by the policy if it has it.
        also: policies by name that are defined elsewhere.

    Raises:
        PolicyError: when the policy or one of its own settings does not exist, or a value is none of that setting.
    """
    name, colon, own = text.partition(":")
    kinds = {**policy_classes(), **(also or {})}
    if name not in kinds:
        raise PolicyError(f"no policy named {name!r} (have: {', '.join(sorted(kinds))}){near(name, kinds)}")
    known = settings_of(kinds[name])
    texts = assignments(own.split(",") if colon else [], where=f"policy {text!r}")
    for key in texts:
        if key not in known:
            raise PolicyError(
                f"policy {name!r} has no setting {key!r} (settings: {', '.join(known)}){near(key, known)}"
            )
    texts = {key: value for key, value in (settings or {}).items() if key in known} | texts
    values: dict[str, Any] = {key: known[key].read(value) for key, value in texts.items()}
    return kinds[name](**values)


def assignments(texts: Sequence[str], *, where: str) -> dict[str, str]:
    """Split texts of the form NAME=VALUE.

    Raises:
        PolicyError: when a text has another form or a name comes twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise PolicyError(f"{where}: a setting is written NAME=VALUE (got {text!r})")
        if name in found:
            raise PolicyError(f"{where}: {name} is set twice (got {found[name]!r} and {value!r})")
        found[name] = value
    return found
