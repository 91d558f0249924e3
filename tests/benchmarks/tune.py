"""What a trial of `tune` costs: evaluation and Optuna apart, for more and more requests, and for one machine and three.

    python tests/benchmarks/tune.py [TRIALS]

The requests are a quarter, half and all of the tuning split of the shipped suite.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import optuna

import calibration
import traces
from traces import Request
from tuning.problem import Problem, widest_priced
from tuning.score import Rules
from tuning.search import chosen
from tuning.selection import candidates
from tuning.space import space
from tuning.split import split
from tuning.study import Place
from tuning.worker import Work
from tuning.workers import work_together

PROFILES = ("gb10-qwen3-1.7b-4bit", "gb10-qwen3-8b-4bit", "gb10-qwen3-4b-4bit")


def requests(share: int) -> tuple[Request, ...]:
    """Every so-many-th request of the shipped suite's tuning split."""
    return split([traces.load("suite")]).tuning[::share]


def measure(share: int, machines: int, trials: int, workers: int) -> str:
    """Search once and say where the time went."""
    profiles = tuple(calibration.shipped(name) for name in PROFILES[:machines])
    widest = widest_priced(profiles, interpolate_widths=False)
    problem = Problem(space("gated", [], [], widest), profiles, Rules())
    given = requests(share)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(Path(folder) / "tune.journal"), "benchmark")
        task = Work(problem, given, place, problem.digests(given), trials=trials)
        began_s = time.perf_counter()
        work_together(task, workers, lambda words: None)
        searched_s = time.perf_counter() - began_s
        found = chosen(task)
        chosen_s = time.perf_counter() - began_s - searched_s
    evaluator = problem.evaluator(given)
    began_s = time.perf_counter()
    for one in candidates(found.trials, problem.space):
        evaluator.speedups(problem.space.policy(one.settings))
    evaluated_s = time.perf_counter() - began_s
    tokens = sum(len(one.reply) for one in given)
    per_trial = 1000 / len(found.trials)
    optuna_ms = f"{(searched_s - evaluated_s) * per_trial:10.1f}" if workers == 1 else f"{'':10}"
    return (
        f"{len(given):8} {tokens:7} {machines:8} {workers:7} {len(found.trials):6} {searched_s:8.1f} {chosen_s:8.1f} "
        f"{evaluated_s * per_trial:13.1f} {optuna_ms}"
    )


def growth(settings: int) -> list[str]:
    """Evaluate the same settings, drawn at random, on ever more requests and machines."""
    profiles = tuple(calibration.shipped(name) for name in PROFILES)
    constants = space("gated", [], [], widest_priced(profiles, interpolate_widths=False))
    drawing = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [constants.policy(constants.draw(drawing.ask())) for _ in range(settings)]
    lines = []
    for share, machines in ((4, 1), (2, 1), (1, 1), (1, 3)):
        given = requests(share)
        evaluator = Problem(constants, profiles[:machines], Rules()).evaluator(given)
        began_s = time.perf_counter()
        for policy in drawn:
            evaluator.speedups(policy)
        per_setting_ms = (time.perf_counter() - began_s) * 1000 / settings
        tokens = sum(len(one.reply) for one in given)
        lines.append(f"{len(given):8} {tokens:7} {machines:8} {per_setting_ms:13.1f}")
    return lines


def main() -> None:
    """Print two tables."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("requests  tokens machines workers trials search_s choose_s evaluation_ms  optuna_ms")
    for share, machines, workers in ((4, 1, 1), (2, 1, 1), (1, 1, 1), (1, 1, 2), (1, 3, 2)):
        print(measure(share, machines, trials, workers), flush=True)
    print("\nthe same settings, drawn at random\nrequests  tokens machines evaluation_ms")
    print("\n".join(growth(trials)))


if __name__ == "__main__":
    main()
