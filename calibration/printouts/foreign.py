"""Costs that other programs measured, made into profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calibration import yaml_text
from calibration.errors import ProfileError
from calibration.printouts import batched_bench, verify_width_cost
from calibration.printouts.about import About
from calibration.profile import Profile
from calibration.profile_file import parse_profile

READERS = {"mlxcel": verify_width_cost.read, "llama-batched-bench": batched_bench.read}
SOURCES = (*READERS, "json")
"""What can be imported, by the name that `--from` takes."""

_BESIDE = ("warnings", "checks")
"""Keys that `calibrate --json` prints beside those of the profile."""


def import_profile(where: str, source: str, about: About) -> Profile:
    """Return the profile that a file comes to.

    Args:
        where: the file.
        source: which program wrote it, one of `SOURCES`.
        about: what the file does not say; nothing of it counts for json, which says all.

    Raises:
        ProfileError: it cannot be read, or is not what that program writes.
    """
    try:
        text = Path(where).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        if source == "json":
            return _json(text, where)
        return READERS[source](text, where, about)
    except ProfileError as error:
        raise ProfileError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None


def _json(text: str, where: str) -> Profile:
    """Read the keys of a profile as one JSON object, in any order; one that is null is as good as left out."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ProfileError("must be a JSON object with the keys of a profile")
    known = {key: value for key, value in _said(document).items() if key not in _BESIDE}
    first = {"format": known["format"]} if "format" in known else {}
    try:
        keys = yaml_text.dump(first | known)
    except (TypeError, AttributeError, ValueError) as error:
        raise ProfileError(f"holds a value that no profile has ({error})") from None
    return parse_profile(keys, where)


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items() if one is not None}
    return value
