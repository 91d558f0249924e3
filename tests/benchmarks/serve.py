"""How many ticks a second a server on a clock does on one core, beside bare SimPy timeouts; run by `make bench`.

Times are the process's own, so that a busy machine distorts them little. The gate is open while no more rows decode
than may propose, and every one of them is asked on every tick.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Generator, Iterator

import simpy

import policies
import traces
from calibration import Costs, ServerCosts, suites
from calibration.serving import ServedForward, StorageTable
from simulator.serving.results import ServedResult
from simulator.serving.server import Server
from simulator.serving.service import Service
from simulator.serving.simpy_server import SimpyServer
from traces import Request

TIMEOUTS = 200_000
TOKENS = 20_000
REQUESTS = 10_000
CLIENTS = 8
ROUNDS = 3
MIB = 1 << (20 if sys.platform == "darwin" else 10)
"""Units of ru_maxrss in a MiB."""


def bare() -> float:
    """Return timeouts a second of SimPy alone."""
    env = simpy.Environment()

    def wait() -> Generator[simpy.Event, None, None]:
        for _ in range(TIMEOUTS):
            yield env.timeout(1)

    env.process(wait())
    return TIMEOUTS / seconds(env.run)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def costs(contexts: int) -> ServerCosts:
    """Make a machine on which a step of n rows takes as long as n steps of one."""
    device = {width: 0.005 + 0.001 * width for width in range(1, 9)}
    steps = [ServedForward(rows, (1,), (1, contexts), (0.006 * rows,), assumed="a benchmark") for rows in range(1, 9)]
    return ServerCosts(
        Costs("benchmark", range(1, contexts + 1), device, read_s=0.001), "dense", StorageTable(tuple(steps))
    )


def ticks(rows: int) -> float:
    """Return ticks a second while so many rows decode replies in which nothing ever repeats."""
    source = random.Random(1)
    requests = [
        Request.of(
            id=str(row),
            prompt=[source.randrange(1 << 30) for _ in range(300)],
            reply=[source.randrange(1 << 30) for _ in range(TOKENS)],
            finish="length",
        )
        for row in range(rows)
    ]
    result, server = prepared(Service(server=Server(parallel=rows, storage="dense")), 2 * TOKENS)
    taken_s = seconds(lambda: server.run(iter(requests)))
    return result.kinds.total() / taken_s


def prepared(service: Service, contexts: int) -> tuple[ServedResult, SimpyServer]:
    """Make a server and what keeps its results."""
    machine, policy = costs(contexts), policies.load("gated")
    result = ServedResult(policy, "benchmark", {}, service)
    server = SimpyServer(policy, machine, service, result.add)
    result.timeline = server.timeline
    return result, server


def lengths() -> list[tuple[int, int]]:
    """Return prompt and reply lengths of the recordings of the basic suite."""
    basic = sorted(prompt.id for prompt in suites.load("basic").prompts)
    return [(len(one.prompt), len(one.reply)) for name in basic for one in traces.load(name).requests]


def suite() -> Iterator[Request]:
    """Yield requests of the suite's lengths, over and over."""
    source = random.Random(2)
    shapes = lengths()
    for place in range(REQUESTS):
        prompt, reply = shapes[place % len(shapes)]
        said = [[source.randrange(500) for _ in range(tokens)] for tokens in (prompt, reply)]
        yield Request.of(id=str(place), prompt=said[0], reply=said[1], finish="length")


def main() -> None:
    """Measure and print."""
    many()
    print(f"{'per second of processor time':40}{'median':>10}{'lowest':>10}{'highest':>10}")
    measures: dict[str, Callable[[], float]] = {
        "bare SimPy timeouts": bare,
        "ticks, 8 rows, gate closed": lambda: ticks(8),
        "ticks, 2 rows, open": lambda: ticks(2),
    }
    rates: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(ROUNDS):
        for name, measure in measures.items():
            rates[name].append(measure())
    for name, found in rates.items():
        low, median, high = sorted(found)[:: ROUNDS // 2]
        print(f"{name:40}{median:10,.0f}{low:10,.0f}{high:10,.0f}")


def many() -> None:
    """Serve many requests, first of all, while the peak of memory is still theirs."""
    result, server = prepared(Service(server=Server(parallel=CLIENTS, storage="dense"), clients=CLIENTS), 4096)
    made_s = seconds(lambda: sum(1 for _ in suite()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    taken_s = seconds(lambda: server.run(suite())) - made_s
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB - before
    generated = server.timeline.tokens
    print(
        f"{REQUESTS:,} requests, {generated:,} tokens, {result.kinds.total():,} ticks at concurrency {CLIENTS}: "
        f"{taken_s:.1f} s beside {made_s:.1f} s of making requests up, {grown:.0f} MiB more at the peak"
    )


if __name__ == "__main__":
    main()
