"""Logs as the reference engine writes them, out of a loop that counts as its drafter does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from calibration import Costs
from policies import Drafter, LookupPolicy, NgramIndex
from simulator.recorded import Recording
from simulator.stream import decode
from tests.live import verified
from traces import Request

NO_PRICES = Costs("nobody asks", range(1, 2), {1: 0.0})


class CountingDrafter(Drafter):
    """Counts a round when it is asked and takes it back when the ask is retracted, as the engine's does."""

    rounds = 0

    def ask(self, remaining: int, most: int, in_flight: bool = False, rows: int = 1) -> int:
        self.rounds += 1
        return super().ask(remaining, most, in_flight, rows)

    def retract(self) -> None:
        self.rounds -= 1
        super().retract()


def engine_counters(request: Request, policy: LookupPolicy, *, pipelined: bool = True) -> dict[str, int]:
    """Decode a reply with an index of what was emitted so far, and return what the engine would have counted."""
    text = [*request.prompt.tolist(), *request.reply.tolist()]
    context = len(request.prompt) + 1
    seen = text[:context]
    index = NgramIndex(
        seen, ngram_max=policy.ngram_max, ngram_min=policy.ngram_min, max_draft=policy.max_draft, match=policy.match
    )
    drafter = CountingDrafter(policy.governor(NO_PRICES), index, context)
    steps = decode(drafter, Recording(request).max_tokens, pipelined=pipelined, pipeline_after=policy.pipeline_after)
    answer: tuple[int, int, bool] | None = None
    while True:
        try:
            code, count = next(steps) if answer is None else steps.send(answer)
        except StopIteration:
            break
        event = verified(code, count, index.proposal(context, count), text[context:], request.finish)
        seen += text[context : context + event.emitted]
        context += event.emitted
        answer = (event.emitted, event.accepted, event.stop)
    return {
        "rounds": drafter.rounds,
        "drafted_rounds": drafter.drafted_rounds,
        "paused_rounds": drafter.paused_rounds,
        "proposed": drafter.proposed,
        "accepted": drafter.accepted,
        "shadow_confirmations": drafter.shadow_confirmations,
    }


def ids_lines(request: Request) -> tuple[str, str]:
    """Return the two lines of ids."""
    prompt, reply = request.prompt.tolist(), request.reply.tolist()
    return f"[prompt ids ({len(prompt)}): {prompt}]", f"[token ids ({len(reply)}): {reply}]"


def counters_line(counters: Mapping[str, int], generated: int) -> str:
    """Return the engine's line of counters, the two ratios where it has them."""
    rounds, proposed = counters["rounds"], counters["proposed"]
    rates = {
        "acceptance_rate": f"{counters['accepted'] / proposed if proposed else 0:.4f}",
        "tokens_per_forward": f"{(generated - 1) / rounds if rounds else 0:.4f}",
    }
    names = [name for name in counters if name != "shadow_confirmations"]
    values = {name: str(counters[name]) for name in names} | rates
    if "shadow_confirmations" in counters:
        values["shadow_confirmations"] = str(counters["shadow_confirmations"])
    return "[Prompt lookup] " + " ".join(f"{name}={value}" for name, value in values.items())


def rate_line(generated: int, seconds: float) -> str:
    """Return the line that ends the engine's standard output."""
    return f"[Generated {generated} tokens in {seconds:.2f}s = {generated / seconds:.2f} tok/s]"


def log_text(
    request: Request, counters: Mapping[str, int] | None = None, *, seconds: float = 0.5, said: str = "said"
) -> str:
    """Return both streams of one run as they come: ids, text, rate, counters."""
    prompt, reply = ids_lines(request)
    generated = len(request.reply)
    lines = [prompt, "Generating...", said, "", rate_line(generated, seconds), reply]
    return "\n".join([*lines, *(["", counters_line(counters, generated)] if counters else []), ""])


def write(path: Path, text: str) -> str:
    """Write a log and return its path as a user types it."""
    path.write_text(text, "utf-8")
    return str(path)
