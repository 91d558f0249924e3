"""Readers for the values of a document: each gives one type, or says what was found instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from calibration.checks import legible, short
from calibration.errors import ProfileError
from calibration.strict_yaml import Scalar, Tree

Value = TypeVar("Value")

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")


def mapping(tree: Tree, where: str, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Tree]:
    """Return a mapping that has all the required keys and no unknown one.

    Args:
        tree: the value read.
        where: its dotted name; empty for the document itself.
        required: keys that must be there.
        optional: keys that may be.

    Raises:
        ProfileError: not a mapping, or one with other keys.
    """
    prefix = f"{where}: " if where else ""
    if not isinstance(tree, dict):
        raise ProfileError(f"{prefix}must be a mapping (got {got(tree)})")
    known = [*required, *optional]
    for key in tree:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ProfileError(f"{prefix}unknown key {short(key)!r} (known: {', '.join(known)}){hint}")
    missing = [repr(key) for key in required if key not in tree]
    if missing:
        word = "key" if len(missing) == 1 else "keys"
        raise ProfileError(f"{prefix}missing {word} {', '.join(missing)}")
    return tree


def optional(read: Callable[[Tree, str], Value], tree: dict[str, Tree], where: str, key: str) -> Value | None:
    """Read a key that may be absent; `where` is the dotted name of the mapping, with its dot."""
    return read(tree[key], f"{where}{key}") if key in tree else None


def text(tree: Tree, where: str) -> str:
    """Return one line of text.

    Raises:
        ProfileError: something else, or empty.
    """
    if not isinstance(tree, Scalar) or tree.kind != "str":
        raise ProfileError(f"{where}: must be text{_quotes(tree)} (got {got(tree)})")
    legible(tree.text, where)
    return tree.text


def number(tree: Tree, where: str) -> float:
    """Return a number; bounds are the business of what it is for.

    Raises:
        ProfileError: something else, or a number that YAML reads otherwise than people do.
    """
    if isinstance(tree, Scalar) and tree.kind in ("int", "float") and not tree.quoted:
        if tree.text.lstrip("+-").lower() in (".inf", ".nan"):
            raise ProfileError(f"{where}: must be a finite number (got {tree.text})")
        if tree.kind == "float" and re.fullmatch(r"[-+.0-9eE]+", tree.text):
            return float(tree.text)
        if _INTEGER.fullmatch(tree.text):
            return float(tree.text)
    elif isinstance(tree, Scalar) and not tree.quoted and _NUMBER.fullmatch(tree.text):
        raise ProfileError(
            f"{where}: YAML reads {short(tree.text)!r} as text; write a point and a signed exponent, as in 5.0e-4"
        )
    raise ProfileError(f"{where}: must be a number (got {got(tree)})")


def integer(tree: Tree, where: str) -> int:
    """Return an integer.

    Raises:
        ProfileError: something else, or one that is not written in plain decimal digits.
    """
    if isinstance(tree, Scalar) and tree.kind == "int" and _INTEGER.fullmatch(tree.text):
        return int(tree.text)
    raise ProfileError(f"{where}: must be an integer (got {got(tree)})")


def several(read: Callable[[Tree, str], Value]) -> Callable[[Tree, str], tuple[Value, ...]]:
    """Return a reader for a list of what `read` reads."""

    def read_all(tree: Tree, where: str) -> tuple[Value, ...]:
        if not isinstance(tree, list):
            raise ProfileError(f"{where}: must be a list (got {got(tree)})")
        return tuple(read(item, f"{where}[{place}]") for place, item in enumerate(tree))

    return read_all


def got(tree: Tree) -> str:
    """Describe what was found, with what YAML makes of it where that may surprise."""
    if isinstance(tree, dict):
        return "a mapping"
    if isinstance(tree, list):
        return "a list"
    if tree.kind == "null":
        return "nothing"
    if tree.kind == "str":
        return repr(short(tree.text)) + (" in quotes" if tree.quoted and _NUMBER.fullmatch(tree.text) else "")
    names = {"bool": "a boolean", "timestamp": "a date", "int": "an integer", "float": "a number"}
    if tree.kind == "int" and not _INTEGER.fullmatch(tree.text):
        names["int"] = _odd_integer(tree.text)
    return f"{short(tree.text)}, which YAML reads as {names.get(tree.kind, tree.kind)}"


def _odd_integer(digits: str) -> str:
    plain = digits.lstrip("+-")
    if ":" in plain:
        return "base sixty"
    if "_" in plain:
        return "an integer with separators"
    return {"0x": "hexadecimal", "0b": "binary"}.get(plain[:2], "octal" if plain[0] == "0" else "a very large integer")


def _quotes(tree: Tree) -> str:
    return " in quotes" if isinstance(tree, Scalar) and tree.kind != "null" else ""
