"""A consistency check: do the published rates, times to the first token and aggregates of one benchmark fit together?

The step costs in the profile were derived from the decode rates, and the time to the first token is an input. What
comes out, the tokens/s of all clients together, was published beside them.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import calibration
import policies
from calibration import ServerCosts
from calibration.prefill import Prefill
from simulator.report import table
from simulator.serving.results import ServedResult
from simulator.serving.server import Server
from simulator.serving.service import Service
from simulator.serving.simpy_server import SimpyServer
from traces import Request

PROFILE = "gb10-qwen3-1.7b-4bit"
PROMPT, REPLY = 512, 128
PUBLISHED = {1: (0.2110, 137.7, 113.1), 4: (0.3381, 35.7, 131.5), 8: (0.2849, 13.0, 101.6)}
"""By clients: seconds to the first token, decode tokens/s of a client, tokens/s of all; medians of three rounds."""
TOGETHER = 4
"""Prompts that the server prefills together."""


def main() -> None:
    """Print published and computed figures side by side."""
    profile = calibration.load(PROFILE)
    costs = profile.server_costs(profile.costs(), "paged")
    rows = [("clients", "first token, ms", "decode, published", "here", "error", "all, published", "here", "error")]
    rows += [level(clients, costs) for clients in PUBLISHED]
    print(table(rows))


def level(clients: int, costs: ServerCosts) -> tuple[str, ...]:
    """Serve as many equal requests as there are clients, and return the row of the table."""
    first_s, decode, aggregate = PUBLISHED[clients]
    # Prompts go in groups of four, one group after another: the published mean is that of the groups.
    groups = [1 + place // TOGETHER for place in range(clients)]
    priced = replace(costs, table=replace(costs.table, prefill=Prefill(fixed_s=first_s / mean(groups))))
    service = Service(server=Server(parallel=8, max_batch_prefill=TOGETHER), clients=clients)
    plain = policies.load("plain")
    result = ServedResult(plain, "", {}, service)
    server = SimpyServer(plain, priced, service, result.add)
    result.timeline = server.timeline
    prompt, reply = [1] * PROMPT, [2] * REPLY
    server.run(Request.of(id=str(n), prompt=prompt, reply=reply, finish="length") for n in range(clients))
    mine = result.total
    rate, every = mine["decode_tokens_per_s"]["mean"], mine["tokens_per_s"]
    cells = [f"{mine['ttft_s']['mean'] * 1000:.1f}", f"{decode:.1f}", f"{rate:.1f}", error(rate, decode)]
    return (str(clients), *cells, f"{aggregate:.1f}", f"{every:.1f}", error(every, aggregate))


def error(mine: float, published: float) -> str:
    """Return by how much a figure misses the published one."""
    return f"{(mine / published - 1) * 100:+.1f} %"


if __name__ == "__main__":
    main()
