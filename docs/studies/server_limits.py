"""Are 2 rows and 4096 tokens of paged context sensible limits for proposals? Prints what other limits would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from server_study import CORNERS, PROFILE, VERIFY, Assumed, Requests, costs_of, percent, shared_gain
from server_workloads import benchmark, stratum

import policies
from calibration import ServerCosts
from calibration.server_costs import StorageKind
from calibration.serving import ServedForward
from policies import Policy
from policies.gated import Gated
from policies.plain import Plain
from simulator.report import table
from simulator.serving.serve_trace import serve_in_memory
from simulator.serving.server import Server
from simulator.serving.service import Service
from traces import Request, Trace

Row = Sequence[str]
CLIENTS = (1, 2, 4, 8)
MOST_ROWS = {PROFILE: 8, "gb10-llama-3.1-8b-4bit": 4}
"""By profile: rows that it has steps of, measured or assumed."""
WORST, BEST = CORNERS[2], CORNERS[1]
"""Dear verifies beside cheap plain steps of two rows, and the other way round."""

CONTEXTS = (1024, 2048, 4096, 8192)
PUBLISHED: Mapping[tuple[StorageKind, int], float] = {
    ("paged", 1024): 2.69,
    ("paged", 2048): 2.79,
    ("paged", 4096): 1.42,
    ("dense", 8192): 2.10,
}
"""The reference's speedups on long copies; of paged 8192 is only known that the smallest of all was 1.12."""
SMALLEST = 1.12
UNKNOWN_TOKEN = 60_000
"""The first of the ids that stand for a long prompt before a question; the tokenizer has none so high."""


def main() -> None:
    """Print the sweep over rows for both profiles, and the sweep over contexts."""
    for profile in MOST_ROWS:
        for policy in (Gated(), policies.load("breakeven")):
            print(table(rows_swept(profile, policy)), end="\n\n")
    print(table(copies_published()), table(contexts_swept()), sep="\n\n")


def rows_swept(profile: str, policy: Policy) -> list[Row]:
    """Return by workload, clients and `max_batch` what proposals bring all clients together, worst and best, in %."""
    most = MOST_ROWS[profile]
    rows: list[Row] = [(f"{policy.name}, {profile}", "clients", *(f"max {limit}" for limit in range(1, most + 1)))]
    for name in ("chat", "plain", "copy"):
        for clients in CLIENTS:
            if clients <= most:
                requests = stratum() if name == "chat" else benchmark(name, 2 * clients)
                cells = [swept(requests, policy, clients, limit, profile) for limit in range(1, clients + 1)]
                rows.append((name, str(clients), *cells, *["="] * (most - clients)))
    return rows


def swept(requests: Requests, policy: Policy, clients: int, limit: int, profile: str) -> str:
    server = Server(parallel=8, max_batch=limit)
    ends = [replace(end, profile=profile) for end in (WORST, BEST)]
    return "/".join(f"{shared_gain(requests, policy, end, clients, server) * 100:+.0f}" for end in ends)


def copies_published() -> list[Row]:
    """Return published speedups of long copies, and those of a copy that lands whole under the assumption."""
    rows: list[Row] = [("long copy", "published", *(f"verify x {factor:g}" for factor in (VERIFY[0], 1.0, VERIFY[1])))]
    for (storage, context), speedup in PUBLISHED.items():
        found = [
            1 + lone(benchmark("copy", 1, context), Gated(), costs_of(Assumed(factor, storage=storage)))
            for factor in (VERIFY[0], 1.0, VERIFY[1])
        ]
        rows.append((f"{storage} {context}", f"{speedup:.2f}", *(f"{one:.2f}" for one in found)))
    return rows


def contexts_swept() -> list[Row]:
    """Return what proposals bring a lone paged row at every context, if nothing limits them."""
    derived = policies.load("breakeven")
    heads = [f"{name}, {policy}" for policy in ("gated", "breakeven") for name in ("chat", "copy", "numbered copy")]
    rows: list[Row] = [("verify", "context", *heads)]
    kinds = {f"x {factor:g}": costs_of(Assumed(factor)) for factor in VERIFY} | {"gathers": gathering()}
    for kind, costs in kinds.items():
        for context in CONTEXTS:
            chat = tuple(behind(question, context) for question in stratum())
            loads = (chat, benchmark("copy", 1, context), benchmark("numbered_copy", 1, context))
            cells = [percent(lone(load, policy, costs)) for policy in (Gated(), derived) for load in loads]
            rows.append((kind, str(context), *cells))
    return rows


def behind(question: Request, context: int) -> Request:
    """Return a question after so long a prompt, of words that nothing looks up, that its reply ends at `context`.

    What a model would say after such a prompt is not known; the reply is the one that it gave without it.
    """
    more = context - len(question.prompt) - len(question.reply)
    prompt = [*range(UNKNOWN_TOKEN, UNKNOWN_TOKEN + more), *question.prompt.tolist()]
    return Request.of(question.id, prompt, question.reply, question.finish, max_tokens=question.max_tokens)


def gathering() -> ServerCosts:
    """Return costs whose verifies gather the paged KV state: dearer beyond 2048 by as much as published speedups say.

    Above 2048 a verify takes so much more, whatever its width, that a copy that lands whole gains what was published
    at 4096, and at 8192 the smallest gain of all; below, nothing more.
    """
    costs = costs_of(Assumed())
    alone = costs.costs
    host_s = alone.launch_s + alone.read_s
    extra_s = dict.fromkeys((320, 576, 2048), 0.0)
    for context, speedup in ((4096, PUBLISHED["paged", 4096]), (8192, SMALLEST)):
        extra_s[context] = 8 * costs.step_s(1, context) / speedup - costs.verify_s(8, context) - host_s
    verifies = tuple(
        ServedForward(
            size=width,
            contexts=tuple(extra_s),
            used_for=(1, 8448),
            seconds=tuple(costs.verify_s(width, at) + host_s + more_s for at, more_s in extra_s.items()),
            assumed="dearer beyond 2048 by what the published speedups of long copies leave",
        )
        for width in range(2, 9)
    )
    return replace(costs, table=replace(costs.table, verify=verifies))


def lone(requests: Requests, policy: Policy, costs: ServerCosts) -> float:
    """Return by how much the decode rate of a client alone differs from plain decoding's, proposals never limited."""
    return seconds(requests, Plain(), costs) / seconds(requests, policy, costs) - 1


def seconds(requests: Requests, policy: Policy, costs: ServerCosts) -> float:
    trace = Trace("requests of a study", {"model": "SmolLM2-135M-Instruct"}, requests)
    server = Server(storage=costs.storage, paged_limit=10**6)
    result = serve_in_memory(trace, policy, costs, Service(server=server, clients=1))
    return float(sum(record["decode_s"] for record in result.records)) - result.warm_up_s


if __name__ == "__main__":
    main()
