"""Where trace, policy and profile meet: one request, one policy, one machine, one run."""

from __future__ import annotations

from calibration import Costs, ProfileError
from policies import Policy
from policies.plain import Plain
from simulator.oracle import Oracle, best_schedule
from simulator.recorded import Recording
from simulator.run import Run
from simulator.two_clocks import TwoClocks
from traces import Request

PLAIN = Plain()


def run(request: Request, policy: Policy, costs: Costs, *, sync: bool = False) -> Run:
    """Predict how a recorded request would have gone under a policy.

    Args:
        request: what was said.
        policy: what to propose and when, or the oracle.
        costs: what forwards cost.
        sync: never pipeline the policy's run; plain decoding beside it still does.

    Raises:
        ProfileError: when a forward's width or context is outside what the costs stand for.
    """
    return simulate(Recording(request), policy, TwoClocks(costs), sync=sync)


def simulate(recording: Recording, policy: Policy, clocks: TwoClocks, *, sync: bool = False) -> Run:
    """Do what `run` does with what several runs can share: the match tables and the clocks."""
    request, costs = recording.request, clocks.costs
    try:
        if isinstance(policy, Oracle):
            schedule = best_schedule(recording, policy, clocks, pipelined=not sync)
        else:
            schedule = recording.schedule(policy, costs, pipelined=not sync)
        plain = recording.schedule(PLAIN, costs)
        return Run(
            request,
            policy,
            schedule,
            prefill_s=costs.prefill_s(recording.prompt_tokens),
            decode_s=clocks.decode_s(schedule.events, recording.prompt_tokens),
            plain_decode_s=clocks.decode_s(plain.events, recording.prompt_tokens),
            clocks=clocks,
        )
    except ProfileError as error:
        raise ProfileError(f"request {request.id!r} under {policy}: {error}") from None
