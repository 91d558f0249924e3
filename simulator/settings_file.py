"""A policy's settings as a file, with the evidence for them, as `tune` writes it.

    format: breakeven-settings/1
    policy: gated
    settings:
      full_at: 1.75
    evidence:
      held_out: 1.031 times the shipped constants (95 % interval 1.012 to 1.049, 20 requests)

Settings that are not in it have the policy's defaults; `none` switches an optional one off. The evidence is for
people: a mapping of texts and numbers that nothing is computed from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import policies
from calibration import ProfileError, fields, yaml_text
from calibration.strict_yaml import Scalar, Tree, parse
from policies import Policy, PolicyError
from policies.settings import settings_of

FORMAT = "breakeven-settings/1"
LARGEST_BYTES = 100_000


def load(where: str) -> Policy:
    """Read a policy with its settings.

    Raises:
        PolicyError: there is no such file, or it cannot be used.
    """
    if not where:
        raise PolicyError("--settings: must be a file (got '')")
    path = Path(where)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise PolicyError(f"{where}: is no regular file")  # reading a pipe or a device may never end
        if path.stat().st_size > LARGEST_BYTES:
            raise PolicyError(f"{where}: is too large for settings ({path.stat().st_size} bytes)")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(f"{where}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise PolicyError(f"{where}: cannot be read ({error.strerror})") from None
    try:
        return _policy(parse(text, where), where)
    except ProfileError as error:
        # The reader of YAML and of fields is the profiles'; it names the file where it knows a line.
        message = str(error)
        raise PolicyError(message if message.startswith(where) else f"{where}: {message}") from None


def dump(policy: Policy, evidence: Mapping[str, str | int | float]) -> str:
    """Write a policy's settings, those that are not its defaults, with the evidence for them.

    >>> print(dump(policies.load("gated:full_at=1.75"), {"date": "2026-11-29"}), end="")
    format: breakeven-settings/1
    policy: gated
    settings:
      full_at: 1.75
    evidence:
      date: "2026-11-29"
    """
    known = settings_of(type(policy))
    changed = {name: value for name, value in policy.settings.items() if value != known[name].default}
    settings = {name: "none" if value is None else value for name, value in changed.items()}
    document = {"format": FORMAT, "policy": policy.name, "settings": settings}
    return yaml_text.dump(document | ({"evidence": dict(evidence)} if evidence else {}))


def _policy(document: Tree, where: str) -> Policy:
    tree = fields.mapping(document, "", ["format", "policy", "settings"], ["evidence"])
    version = tree["format"]
    if next(iter(tree)) != "format" or not isinstance(version, Scalar) or version.text != FORMAT:
        raise PolicyError(f"{where}: format: must be {FORMAT}, as the first key (got {fields.got(version)})")
    name = fields.text(tree["policy"], "policy")
    kinds = policies.policy_classes()
    if name not in kinds:
        # Also `gated:full_at=3`, which is a policy on a command line only.
        have = ", ".join(kinds)
        raise PolicyError(f"{where}: no policy named {name!r} (have: {have}){policies.near(name, kinds)}")
    settings = tree["settings"]
    if isinstance(settings, Scalar) and settings.kind == "null":
        settings = {}  # how YAML writes a mapping of nothing
    if not isinstance(settings, dict):
        raise PolicyError(f"{where}: settings: must be a mapping (got {fields.got(settings)})")
    if not isinstance(tree.get("evidence", {}), dict):
        raise PolicyError(f"{where}: evidence: must be a mapping (got {fields.got(tree['evidence'])})")
    known = settings_of(kinds[name])
    for key in settings:
        if key not in known:
            raise PolicyError(
                f"{where}: policy {name!r} has no setting {key!r} "
                f"(settings: {', '.join(known)}){policies.near(key, known)}"
            )
    texts = [f"{key}={_scalar(value, f'settings.{key}')}" for key, value in settings.items()]
    try:
        return policies.load(f"{name}:{','.join(texts)}" if texts else name)
    except PolicyError as error:
        raise PolicyError(f"{where}: {error}") from None


def _scalar(value: Tree, where: str) -> str:
    if (
        not isinstance(value, Scalar)
        or not value.text
        or set(value.text) & {",", "="}
        or value.text != value.text.strip()
    ):
        raise ProfileError(f"{where}: must be a number or a word (got {fields.got(value)})")
    return value.text
