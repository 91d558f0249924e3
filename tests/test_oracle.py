"""The oracle: a bound that no policy beats, and a schedule that the loop's own actions make."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration import Costs, ProfileError
from policies import LookupPolicy, Policy
from policies.plain import Plain
from simulator import Event, Oracle, run
from simulator.recorded import Recording
from simulator.two_clocks import TwoClocks
from tests import strategies
from traces import Request


@settings(max_examples=400)
@given(request=strategies.requests(), policy=strategies.any_policies(), costs=strategies.machines(), sync=st.booleans())
def test_no_policy_beats_the_oracle(request: Request, policy: Policy, costs: Costs, sync: bool) -> None:
    oracle = Oracle()
    if isinstance(policy, LookupPolicy):
        oracle = Oracle(
            ngram_max=policy.ngram_max, ngram_min=policy.ngram_min, max_draft=policy.max_draft, match=policy.match
        )

    best = run(request, oracle, costs, sync=sync)

    assert best.decode_s <= run(request, policy, costs, sync=sync).decode_s + 1e-9
    assert best.generated == len(request.reply)


@settings(max_examples=60)
@given(request=strategies.requests(alphabet=2, longest=6), costs=strategies.machines())
def test_no_sequence_of_actions_beats_the_oracle(request: Request, costs: Costs) -> None:
    oracle = Oracle(max_draft=2, ngram_min=1)
    recording, clocks = Recording(request), TwoClocks(costs)

    best = run(request, oracle, costs).decode_s

    assert best == pytest.approx(
        min(clocks.decode_s(events, recording.prompt_tokens) for events in every(recording, oracle))
    )


def every(recording: Recording, oracle: Oracle) -> list[tuple[Event, ...]]:
    """Return every sequence of the loop's actions that decodes the reply."""
    request, lookup = recording.request, recording.lookup(oracle)
    found: list[tuple[Event, ...]] = []

    def walk(events: tuple[Event, ...], emitted: int, in_flight: bool) -> None:
        left, remaining = recording.reply_tokens - emitted, recording.max_tokens - emitted
        if (events and events[-1].stop) or remaining == 0 or (request.finish == "guard" and not left):
            found.append(events)
            return
        tokens = min(left, 1)
        if in_flight:
            walk((*events, Event("D", 0, tokens, 0, not left)), emitted + tokens, False)
            if remaining > 1:
                walk((*events, Event("P", 1, tokens, 0, not left)), emitted + tokens, True)
            return
        context = recording.prompt_tokens + emitted
        most = min(lookup.find(context), remaining - 1) if request.eligible else 0
        for proposed in range(most + 1):
            landed, accepted, stop = recording.land(lookup.true_tokens(context), proposed, left)
            code = "V" if proposed else "S"
            walk((*events, Event(code, proposed, landed, accepted, stop)), emitted + landed, False)
        if request.pipelinable and remaining > 1:
            walk((*events, Event("B", 0, 0, 0, False)), emitted, True)

    walk((), 1, False)
    return found


def test_the_oracle_never_drafts_where_nobody_may() -> None:
    request = Request.of(
        id="r", prompt=[3, 3, 3], reply=[3] * 5, finish="length", eligible=False, reason="images", pipelinable=True
    )
    costs = Costs("m", range(1, 100), dict.fromkeys(range(1, 9), 0.01), read_s=0.002)

    assert run(request, Oracle(), costs).schedule.codes == "B P P P R"


def test_the_oracle_pipelines_prose_from_its_first_step() -> None:
    request = Request.of(id="r", prompt=[1, 2], reply=[*range(10, 18)], finish="length")
    costs = Costs("m", range(1, 100), dict.fromkeys(range(1, 9), 0.01), read_s=0.002)

    assert run(request, Oracle(), costs).schedule.codes == "B P P P P P P R"


@pytest.mark.parametrize(("finish", "limit"), list(product(["stop", "length", "guard"], [None, 3])))
def test_the_oracle_ends_as_the_reply_does(finish: str, limit: int | None) -> None:
    request = Request.of(id="r", prompt=[1], reply=[2, 3, 4], finish=finish, max_tokens=limit)
    costs = Costs("m", range(1, 100), dict.fromkeys(range(1, 9), 0.01), read_s=0.002)

    result = run(request, Oracle(), costs)

    assert result.generated == 3
    assert any(event.stop for event in result.schedule.events) == (finish == "stop" and limit is None)


@pytest.mark.parametrize("finish", ["length", "guard", "stop"])
@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_the_oracle_needs_no_context_that_plain_decoding_does_not(finish: str, tokens: int) -> None:
    request = Request.of(id="r", prompt=[1] * 20, reply=[*range(tokens)], finish=finish)
    for last in range(18, 30):
        costs = Costs("m", range(1, last + 1), dict.fromkeys(range(1, 9), 0.01))
        try:
            run(request, Plain(), costs)
        except ProfileError:
            continue

        assert run(request, Oracle(), costs).generated == tokens
