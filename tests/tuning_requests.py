"""Requests to tune on: copies that lookup lands on, and prose that repeats itself only by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import calibration
import traces
from traces import Request
from tuning.problem import Problem, widest_priced
from tuning.score import Rules
from tuning.space import space
from tuning.study import Place
from tuning.worker import Work

PROFILE = "gb10-qwen3-1.7b-4bit"


def copying(name: str, seed: int, *, held_out: bool = False) -> Request:
    """A reply that repeats its prompt, but for a token in twenty."""
    draw = random.Random(seed)
    prompt = [draw.randrange(1000) for _ in range(80)]
    reply = [draw.randrange(1000) if draw.random() < 0.05 else token for token in prompt]
    return Request.of(name, [*prompt, 1001, 1002], reply, "stop", tags=_tags("copy", held_out))


def prose(name: str, seed: int, *, held_out: bool = False) -> Request:
    """A reply of few words, in which what was said once is often said again and mostly goes on otherwise."""
    draw = random.Random(seed)
    words = [int(draw.paretovariate(0.7)) % 90 for _ in range(120)]
    return Request.of(name, words[:20], words[20:], "stop", tags=_tags("story", held_out, "prose"))


def _tags(category: str, held_out: bool, *more: str) -> tuple[str, ...]:
    return (category, *more, *(["held-out"] if held_out else []))


def requests(count: int = 3, *, held_out: bool = False, seed: int = 0) -> tuple[Request, ...]:
    """So many of each kind."""
    mark = "held_" if held_out else ""
    seed += 300 * held_out  # what is held out says something else
    copies = (copying(f"{mark}copy{place}", seed + place, held_out=held_out) for place in range(count))
    stories = (prose(f"{mark}story{place}", seed + 50 + place, held_out=held_out) for place in range(count))
    return (*copies, *stories)


def problem(
    *,
    policy: str = "gated",
    ranges: Sequence[str] = (),
    fixes: Sequence[str] = (),
    profiles: Sequence[str] = (PROFILE,),
    rules: Rules | None = None,
) -> Problem:
    """A problem on shipped machines."""
    found = tuple(calibration.shipped(name) for name in profiles)
    widest = widest_priced(found, interpolate_widths=False)
    return Problem(space(policy, fixes, ranges, widest), found, rules or Rules(floor=0.9))


def task(folder: Path, asked: Problem | None = None, **others: Any) -> Work:
    """Work on a journal in a folder."""
    asked = asked or problem()
    given = requests()
    place = Place(str(folder / "tune.journal"), "study")
    return Work(asked, given, place, asked.digests(given), **{"trials": 12, **others})


def write(path: Path, *parts: tuple[Request, ...]) -> str:
    """Write a trace of some requests and return its path."""
    traces.write(path, {"model": "Qwen3-1.7B-4bit"}, [request for part in parts for request in part])
    return str(path)
