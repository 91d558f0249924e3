"""Prompt suites: JSON files of prompts to record, and the ones that ship with the package.

A suite is one object, `{"format": "breakeven-suite/1", "prompts": [...]}`; every prompt has an `id`, which also names
its trace file, a `prompt`, and may have `tags` and `max_tokens`. A prompt is what a user says, or the list of what was
said in turn, by the user first and last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "breakeven-suite/1"
KEYS = ("id", "max_tokens", "prompt", "tags")
_FOLDER = Path(__file__).with_name("suites")


class SuiteError(ValueError):
    """A suite that cannot be found or used, said in one line."""


@dataclass(frozen=True)
class Prompt:
    """One message for the model, or a conversation that it is to go on with.

    Raises:
        SuiteError: a field is not what it should be.
    """

    id: str
    """Letters, digits, `_`, `-` and `.`, beginning with a letter or digit, for it names a file."""

    prompt: str | tuple[str, ...]
    """What the user says, or what was said in turn; the model's chat form is put around it later."""

    tags: tuple[str, ...] = ()
    """Words to select by."""

    max_tokens: int | None = None
    """The longest reply, in tokens; None leaves it to the command."""

    def __post_init__(self) -> None:
        if not (isinstance(self.id, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.id)):
            raise SuiteError(f"id must be letters, digits, '_', '-' or '.', a letter or digit first (got {self.id!r})")
        for text in self.turns:
            if not (isinstance(text, str) and text.strip()):
                raise SuiteError(f"prompt must be a text that is not empty, or a list of such (got {text!r})")
        if len(self.turns) % 2 == 0:
            raise SuiteError(
                f"prompt must be of an odd number of turns, the user's first and last (got {len(self.turns)})"
            )
        if not all(isinstance(tag, str) and tag for tag in self.tags):
            raise SuiteError(f"tags must be words (got {list(self.tags)!r})")
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            raise SuiteError(f"max_tokens must be an integer >= 1 (got {self.max_tokens!r})")

    @property
    def turns(self) -> tuple[str, ...]:
        """What was said in turn: by the user, by the model, and so on, by the user last."""
        return self.prompt if isinstance(self.prompt, tuple) else (self.prompt,)


@dataclass(frozen=True)
class Suite:
    """Prompts in the order in which they are recorded."""

    name: str
    """The shipped name, or the path as typed."""

    prompts: tuple[Prompt, ...]
    """At least one; their ids differ."""


def names() -> list[str]:
    """Return the suites that ship with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def load(where: str) -> Suite:
    """Return the suite in the file `where`, or else the shipped one of that name.

    Raises:
        SuiteError: there is neither, or something in it is wrong.
    """
    path = Path(where)
    if not path.is_file():
        if where not in names():
            raise SuiteError(f"no suite named {where!r}, nor such a file (shipped: {', '.join(names())})")
        path = _FOLDER / f"{where}.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_duplicates)
        return Suite(where, _prompts(document))
    except OSError as error:
        raise SuiteError(f"{where}: cannot be read ({error.strerror})") from error
    except SuiteError as error:
        raise SuiteError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: not JSON ({error})") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        raise SuiteError(f"key {next(key for key in keys if keys.count(key) > 1)!r} appears twice in one object")
    return document


def _prompts(document: object) -> tuple[Prompt, ...]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        got = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise SuiteError(f"format must be {FORMAT!r} (got {got!r})")
    _check_keys("suite", document, ("format", "prompts"), required=("prompts",))
    entries = document["prompts"]
    if not (isinstance(entries, list) and entries):
        raise SuiteError("prompts must be a list with at least one entry")
    prompts: list[Prompt] = []
    for number, entry in enumerate(entries, start=1):
        place = f"prompt {number}"
        if not isinstance(entry, dict):
            raise SuiteError(f"{place}: must be an object (got {type(entry).__name__})")
        _check_keys(place, entry, KEYS, required=("id", "prompt"))
        if not isinstance(entry.get("tags", []), list):
            raise SuiteError(f"{place}: tags must be a list (got {entry['tags']!r})")
        try:
            said = tuple(entry["prompt"]) if isinstance(entry["prompt"], list) else entry["prompt"]
            prompts.append(Prompt(**{**entry, "prompt": said, "tags": tuple(entry.get("tags", ()))}))
        except SuiteError as error:
            raise SuiteError(f"{place}: {error}") from None
        if prompts[-1].id in {prompt.id for prompt in prompts[:-1]}:
            raise SuiteError(f"{place}: id {prompts[-1].id!r} is taken by an earlier one")
    return tuple(prompts)


def _check_keys(place: str, entry: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...]) -> None:
    for key in entry:
        if key not in known:
            raise SuiteError(f"{place}: unknown key {key!r} (known: {', '.join(known)})")
    for key in required:
        if key not in entry:
            raise SuiteError(f"{place}: no {key!r}")
