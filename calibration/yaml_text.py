"""A writer for the plain part of YAML that `strict_yaml` reads, laid out for people and for diffs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def dump(document: Mapping[str, Any]) -> str:
    """Write a document of mappings, lists, text and numbers, keys in their order.

    >>> print(dump({"name": "gb10", "cost": {"widths": [1, 2], "sync_s": [[5e-05], [0.25]]}}), end="")
    name: gb10
    cost:
      widths: [1, 2]
      sync_s:
        - [0.00005]
        - [0.25]
    """
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(document: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in _lines(value))]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines.append(f"{key}:")
            for item in value:
                first, *others = _lines(item)
                lines += [f"  - {first}", *(f"    {line}" for line in others)]
        elif isinstance(value, list) and value and isinstance(value[0], str | list):
            lines += [f"{key}:", *(f"  - {_flow(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return lines


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _decimal(value: float) -> str:
    # never an exponent: YAML reads 5e-05 as text
    text = format(Decimal(repr(float(value))), "f")
    return text if "." in text else f"{text}.0"
