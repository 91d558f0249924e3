"""What a search maximises, what it may not do, and how sure a gain is."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import pytest

from tests.tuning_requests import requests
from traces import Request, Trace
from tuning.effect import effect
from tuning.errors import TuningError
from tuning.kinds import category, is_prose
from tuning.score import Judge, Rules
from tuning.split import split


def request(name: str, *tags: str) -> Request:
    return Request.of(name, [1, 2], [3], "stop", tags=tags)


def test_the_first_tag_is_the_category_and_what_copies_is_no_prose() -> None:
    assert category(request("a", "held-out", "copy", "prose")) == "copy"
    assert category(request("a")) == "untagged"
    assert [is_prose(request("a", *tags)) for tags in (["copy", "prose"], ["email", "prose"], ["chat"], ["code"])] == [
        False,
        True,
        True,
        False,
    ]


def test_the_objective_is_the_weighted_geometric_mean_over_categories_of_the_worst_machine() -> None:
    judge = Judge(
        [request("a", "copy"), request("b", "copy"), request("c", "code")],
        Rules(weights={"copy": 3.0}),
        shipped=((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    )

    score = judge.score(((2.0, 8.0, 1.0), (4.0, 4.0, 0.5)))

    # 4 and 1 on the first machine, 4 and 0.5 on the second: (4 ** 3 * 1) ** (1/4) and (4 ** 3 * 0.5) ** (1/4).
    assert score.speedup == pytest.approx(32 ** (1 / 4))
    assert judge.weights() == [1.5, 1.5, 1.0]


def test_prose_may_not_fall_below_the_floor_and_copying_keeps_its_share() -> None:
    judge = Judge(
        [request("a", "copy"), request("b", "story"), request("c", "edit")],
        Rules(floor=0.99, keep=0.5),
        shipped=((2.0, 0.9, 0.8),),
    )

    kept, slow, lost = (judge.score((row,)) for row in ((1.5, 0.99, 0.5), (1.5, 0.95, 0.9), (1.4, 1.0, 0.9)))

    assert kept.feasible
    assert (kept.broken, slow.broken, lost.broken) == ("", "prose by 0.040", "copying by 0.100")
    assert slow.violations == {"prose": pytest.approx(0.04), "copying": pytest.approx(0.0)}
    assert lost.violation == pytest.approx(0.1)  # half of the shipped gain is 1.5; edit gained nothing and owes nothing


def test_a_gain_is_outside_noise_when_the_whole_interval_is_above_1_and_requests_are_not_too_few() -> None:
    eight = [request(f"r{place}", "copy") for place in range(8)]
    shipped = (tuple([1.0] * 8),)

    sure = effect(Judge(eight, Rules(), shipped), ((1.1, 1.2, 1.1, 1.3, 1.1, 1.2, 1.1, 1.2),))
    noise = effect(Judge(eight, Rules(), shipped), ((1.4, 0.9, 0.8, 1.3, 0.9, 1.2, 0.9, 1.1),))
    few = effect(Judge(eight[:5], Rules(), ((1.0,) * 5,)), ((1.1,) * 5,))

    assert (sure.gains, noise.gains, few.gains) == (True, False, False)
    assert sure.low > 1.1 > 1 > noise.low
    assert few.low == pytest.approx(1.1)
    assert sure.ratio == pytest.approx(math.prod([1.1, 1.2, 1.1, 1.3, 1.1, 1.2, 1.1, 1.2]) ** (1 / 8))


def test_an_effect_on_several_machines_is_that_on_the_worst_objective() -> None:
    judge = Judge([request(f"r{place}", "copy") for place in range(6)], Rules(), shipped=((2.0,) * 6, (1.0,) * 6))

    found = effect(judge, ((1.5,) * 6, (1.2,) * 6))

    assert found.ratio == found.low == found.high == pytest.approx(1.2)


def test_tags_split_the_requests_and_without_any_a_hash_of_the_ids_does() -> None:
    header = {"model": "m"}
    tagged = split([Trace("a", header, requests(2)), Trace("b", header, requests(1, held_out=True))])
    untagged = split([Trace("a", header, requests(3))])

    assert [one.id for one in tagged.held_out] == ["held_copy0", "held_story0"]
    assert tagged.rule == "the tag 'held-out'"
    by_hash = sorted(requests(3), key=lambda one: hashlib.sha256(one.id.encode()).hexdigest())
    assert set(untagged.held_out) == set(by_hash[:2])
    assert set(untagged.tuning) == set(by_hash[2:])


def test_what_says_the_same_is_in_one_part_only() -> None:
    header = {"model": "m"}
    alone = split([Trace("a", header, requests(3))])
    laps = [replace(one, id=f"{one.id}-{lap}") for lap in (2, 3) for one in requests(3)]
    together = split([Trace("a", header, requests(3)), Trace("b", header, tuple(laps))])

    assert {one.id.partition("-")[0] for one in together.held_out} == {one.id for one in alone.held_out}
    assert len(together.held_out) == 3 * len(alone.held_out)
    one = requests(1)[0]
    with pytest.raises(TuningError, match="'copy0' and 'held' say the same, and only one of them is held out"):
        split([Trace("a", header, (one, replace(one, id="held", tags=(*one.tags, "held-out"))))])


def test_rounding_breaks_no_rule() -> None:
    given = requests(2)
    even = ((1.1, 1.1, 0.99 - 1e-15, 1.0),)
    judge = Judge(given, Rules(floor=0.99), even)

    assert judge.score(even).violations["prose"] == 0
    assert judge.score(even).feasible
    assert not judge.score(((1.1, 1.1, 0.98, 1.0),)).feasible


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(TuningError) as one:
        split([Trace("a", {"model": "m"}, requests(1)[:1])])
    with pytest.raises(TuningError) as all_held_out:
        split([Trace("a", {"model": "m"}, requests(1, held_out=True))])

    assert str(one.value) == (
        "the held-out split is empty (by the SHA-256 of their ids, the lowest third, of 1 request); "
        "name more traces, or tag requests 'held-out'"
    )
    assert str(all_held_out.value).startswith("the tuning split is empty (by the tag 'held-out', of 2 requests)")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"keep": 1.5}, "keep must be between 0 and 1 (got 1.5)"),
        ({"floor": -1.0}, "floor must be at least 0 (got -1)"),
        ({"weights": {"copy": 0.0}}, "weight of 'copy' must be above 0 (got 0)"),
    ],
)
def test_a_rule_that_is_none_is_refused(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(TuningError) as refused:
        Rules(**rules)

    assert str(refused.value) == words
