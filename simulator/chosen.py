"""The policies of a command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

import policies
from policies import Policy, PolicyError
from simulator.oracle import Oracle
from simulator.settings_file import load


def chosen_policies(
    texts: Sequence[str], sets: Sequence[str], files: Sequence[str] = (), *, files_first: bool = False
) -> list[Policy]:
    """Make the policies of a command line.

    Args:
        texts: of `--policy`.
        sets: of `--set`, which the policies of files do not take: theirs are what the file says.
        files: of `--settings`.
        files_first: whether `--settings` came first.

    Raises:
        PolicyError: when a policy or setting does not exist or a value does not fit it.
        click.UsageError: when there is no policy at all.
    """
    if not texts and not files:
        raise click.UsageError("Missing option '--policy' or '--settings'")
    settings = policies.assignments(sets, where="--set")
    chosen = [policies.load(text, settings, also={"oracle": Oracle}) for text in texts]
    if settings and not texts:
        raise PolicyError(f"--set {next(iter(settings))}: sets a --policy; a file's settings are what it says")
    known = sorted({name for policy in chosen for name in policy.settings})
    for name in settings:
        if name not in known:
            near = policies.near(name, known)
            raise PolicyError(f"--set {name}: no chosen policy has it (settings: {', '.join(known)}){near}")
    loaded = [load(file) for file in files]
    return loaded + chosen if files_first else chosen + loaded


def files_first(context: click.Context) -> bool:
    """Return whether `--settings` came before the first `--policy`: click takes options as they are typed."""
    names = list(context.params)
    return names.index("files") < names.index("texts")
