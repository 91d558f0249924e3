"""The policies of a command line."""

from __future__ import annotations

from collections.abc import Sequence

import policies
from policies import Policy, PolicyError
from simulator.oracle import Oracle


def chosen_policies(texts: Sequence[str], sets: Sequence[str]) -> list[Policy]:
    """Make the policies of a command line.

    Raises:
        PolicyError: when a policy or setting does not exist or a value does not fit it.
    """
    settings = policies.assignments(sets, where="--set")
    chosen = [policies.load(text, settings, also={"oracle": Oracle}) for text in texts]
    known = sorted({name for policy in chosen for name in policy.settings})
    for name in settings:
        if name not in known:
            near = policies.near(name, known)
            raise PolicyError(f"--set {name}: no chosen policy has it (settings: {', '.join(known)}){near}")
    return chosen
