"""What the studies of the recorded suite share: its two parts, the machines, and how fast policies are on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import calibration
import policies
import traces
from policies import Policy
from simulator.oracle import Oracle
from traces import Request
from tuning.evaluation import Alone, Speedups
from tuning.problem import widest_priced
from tuning.score import Judge, Rules
from tuning.split import split

GB10 = ("gb10-qwen3-1.7b-4bit", "gb10-qwen3-4b-4bit", "gb10-qwen3-8b-4bit", "gb10-llama-3.1-8b-4bit")
HERE = (
    "epyc-smollm2-135m-float32-openblas",
    "epyc-smollm2-135m-bfloat16",
    "epyc-smollm2-135m-q4",
)
MACHINES = (*GB10, *HERE)
TUNED = Path(__file__).with_name("gated_constants.json")
"""What gated_constants.py --search found."""

Row = Sequence[str]


@cache
def tuning_part() -> tuple[Request, ...]:
    """Return the requests that settings may be chosen on."""
    return split([traces.load("suite")]).tuning


@cache
def held_out_part() -> tuple[Request, ...]:
    """Return the requests that no setting was chosen on."""
    return split([traces.load("suite")]).held_out


Part = Callable[[], tuple[Request, ...]]


def whole() -> tuple[Request, ...]:
    """Return all of them."""
    return (*tuning_part(), *held_out_part())


@cache
def evaluator(part: Part) -> Alone:
    """Return what says how fast the requests of a part are on every machine."""
    profiles = [calibration.load(name) for name in MACHINES]
    widest = widest_priced(profiles, interpolate_widths=False)
    return Alone(part(), [profile.costs() for profile in profiles], widest - 1)


@cache
def speedups(policy: Policy, part: Part) -> Speedups:
    """Return the speedups over plain decoding: a row a machine, in it a figure a request."""
    if part is whole:
        parts = (speedups(policy, tuning_part), speedups(policy, held_out_part))
        return tuple((*tuned_on, *left_out) for tuned_on, left_out in zip(*parts, strict=True))
    return evaluator(part).speedups(policy)


@cache
def judge(part: Part) -> Judge:
    """Return what averages speedups by category."""
    return Judge(part(), Rules(), speedups(policies.load("gated"), part))


def overall(policy: Policy, part: Part, machine: str) -> float:
    """Return the geometric mean speedup over categories on a machine."""
    return judge(part).machine(speedups(policy, part)[MACHINES.index(machine)])


def slowest_prose(policy: Policy, part: Part, machine: str) -> float:
    """Return the speedup of the slowest request of free prose."""
    row = speedups(policy, part)[MACHINES.index(machine)]
    return min(row[place] for place in judge(part).prose)


def share(policy: Policy, part: Part, machine: str) -> float:
    """Return what a policy reaches of what the oracle gains with the default lookup."""
    return (overall(policy, part, machine) - 1) / (overall(Oracle(), part, machine) - 1)


@cache
def tuned() -> Mapping[str, Policy]:
    """Return `gated` with the constants that `tune` found, by the machines that it was asked for."""
    found = json.loads(TUNED.read_text("utf-8"))
    return {name: policies.load("gated", changes) for name, changes in found.items()}


def short(machine: str) -> str:
    """Return a machine's name without what all of them share.

    >>> short("gb10-qwen3-1.7b-4bit"), short("epyc-smollm2-135m-q4")
    ('gb10 qwen3-1.7b', 'epyc q4')
    """
    return machine.removesuffix("-4bit").replace("-smollm2-135m", "").replace("-", " ", 1)


def percent(figure: float, sign: str = "") -> str:
    """Return a share of 1 as a percentage."""
    return f"{figure * 100:{sign}.1f} %"
