"""A reader for the plain part of YAML: mappings, lists and scalars, each written once.

Aliases, tags, merge keys, duplicate keys and second documents are refused, and scalars stay as they were written,
so that whoever reads a field can say what YAML would have made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from calibration.errors import ProfileError

MAX_DEPTH = 8
"""Deeper nesting than any profile has; the reader recurses once a level."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser compiled into PyYAML where there is one: about ten times as fast, and the same events."""

_RESOLVER: Any = yaml.resolver.Resolver()


@dataclass(frozen=True)
class Scalar:
    """One scalar as written."""

    text: str
    """The characters, without quotes."""
    kind: str
    """What YAML takes it for: str, int, float, bool, null, timestamp, merge or value."""
    quoted: bool
    """Whether it was written in quotes or as a block."""


Tree: TypeAlias = "Scalar | list[Tree] | dict[str, Tree]"


def parse(text: str, where: str, loader: Any = LOADER) -> Tree:
    """Read one document.

    Args:
        text: the whole document.
        where: what errors call it.
        loader: the PyYAML loader whose parser is used.

    Raises:
        ProfileError: the text is no YAML, or more than the plain part of it.
    """
    events = yaml.parse(text, Loader=loader)
    try:
        return _document(events, where)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ProfileError(f"{where}{line}: not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise ProfileError(f"{where}: not YAML ({getattr(error, 'reason', error)})") from None


def _document(events: Iterator[Any], where: str) -> Tree:
    next(events)  # the start of the stream
    if isinstance(next(events), yaml.StreamEndEvent):
        raise ProfileError(f"{where}: is empty")
    tree = _node(next(events), events, where, 0)
    next(events)  # the end of the document
    after = next(events)
    if not isinstance(after, yaml.StreamEndEvent):
        raise ProfileError(f"{where}:{_line(after)}: a second document begins here (one profile a file)")
    return tree


def _node(event: Any, events: Iterator[Any], where: str, depth: int) -> Tree:
    at = f"{where}:{_line(event)}"
    if getattr(event, "anchor", None) is not None:
        what = "alias *" if isinstance(event, yaml.AliasEvent) else "anchor &"
        raise ProfileError(f"{at}: {what}{event.anchor} is not allowed (write the value out)")
    if event.tag is not None:
        raise ProfileError(f"{at}: a tag is not allowed (got {event.tag!r})")
    if depth > MAX_DEPTH:
        raise ProfileError(f"{at}: is nested too deeply (at most {MAX_DEPTH} levels)")
    if isinstance(event, yaml.ScalarEvent):
        tag: str = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
        return Scalar(event.value, tag.rpartition(":")[2], bool(event.style))
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Tree] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_node(item, events, where, depth + 1))
        return items
    return _mapping(events, where, depth)


def _mapping(events: Iterator[Any], where: str, depth: int) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _node(event, events, where, depth + 1)
        at = f"{where}:{_line(event)}"
        if not isinstance(key, Scalar):
            raise ProfileError(f"{at}: a key must be a plain word")
        if key.kind != "str":
            raise ProfileError(f"{at}: a key must be a plain word (got {key.text}, which YAML reads as {key.kind})")
        if key.text in found:
            raise ProfileError(f"{at}: duplicate key {key.text!r}")
        found[key.text] = _node(next(events), events, where, depth + 1)
    return found


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
