"""What every policy promises, whichever file it is in."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given

import policies
from calibration import Costs
from policies import OneOf, Policy, PolicyError, Range, settings_of
from simulator.recorded import Recording
from tests import strategies
from traces import Request

NAMES = policies.names()
HAVE = ", ".join(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_has_defaults_a_name_and_one_line_that_says_what_it_does(name: str) -> None:
    policy = policies.load(name)

    assert policy.name == name
    assert str(policy) == name
    first, *rest = (type(policy).__doc__ or "").splitlines()
    assert re.fullmatch(r"[A-Z].*\.", first)
    assert not rest or not rest[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_frozen(name: str) -> None:
    policy = policies.load(name)

    with pytest.raises(FrozenInstanceError):
        policy.__setattr__("pipeline_after", 3)


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_says_what_it_means(name: str) -> None:
    source = {line.strip() for kind in type(policies.load(name)).__mro__ for line in _lines(kind)}

    for setting in settings_of(type(policies.load(name))):
        assert any(line.startswith(f"{setting}: Annotated[") for line in source)


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name in NAMES for setting in settings_of(type(policies.load(name)))]
)
def test_a_setting_outside_its_range_is_refused(name: str, setting: str) -> None:
    known = settings_of(type(policies.load(name)))[setting]
    if isinstance(known.domain, OneOf):
        wrong = ["newest", ""]
    else:
        wrong = [f"{known.domain.low - 1:g}", f"{known.domain.high + 1:g}", "nan", "inf", "x", "true", "1e999"]

    for text in wrong:
        with pytest.raises(PolicyError, match=rf"^{setting} must be "):
            policies.load(name, {setting: text} if text else None) if text else known.read(text)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("gatd", {}, f"no policy named 'gatd' (have: {HAVE}); did you mean 'gated'?"),
        ("", {}, f"no policy named '' (have: {HAVE})"),
        ("errors", {}, f"no policy named 'errors' (have: {HAVE})"),
        (
            "plain:depth=3",
            {},
            "policy 'plain' has no setting 'depth' (settings: pipeline_after)",
        ),
        ("gated:narrow", {}, "policy 'gated:narrow': a setting is written NAME=VALUE (got 'narrow')"),
        ("gated:", {}, "policy 'gated:': a setting is written NAME=VALUE (got '')"),
        ("gated:narrow=2,narrow=3", {}, "policy 'gated:narrow=2,narrow=3': narrow is set twice (got '2' and '3')"),
        ("gated", {"max_draft": "99"}, "max_draft must be between 1 and 64 (got 99)"),
        ("gated", {"max_draft": "1" + "0" * 400}, f"max_draft must be between 1 and 64 (got {10**400})"),
        ("gated", {"full_at": "inf"}, "full_at must be between 0 and 64 (got inf)"),
        ("gated", {"max_draft": "1_0"}, "max_draft must be a whole number (got '1_0')"),
        ("gated", {"max_draft": "7.5"}, "max_draft must be a whole number (got '7.5')"),
        ("gated", {"full_at": "high"}, "full_at must be a number (got 'high')"),
        ("gated", {"full_at": "nan"}, "full_at must be between 0 and 64 (got nan)"),
        ("gated", {"match": "newest"}, "match must be one of latest, earliest (got 'newest')"),
        ("gated", {"min_tokens_per_round": "some"}, "min_tokens_per_round must be a number or none (got 'some')"),
        ("graded", {"ngram_max": "1"}, "ngram_max must be at least ngram_min 2 (got 1)"),
        ("graded", {"ngram_min": "4"}, "ngram_max must be at least ngram_min 4 (got 3)"),
    ],
)
def test_a_wrong_policy_is_refused_in_one_line(text: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policies.load(text, settings)

    assert str(refused.value) == message


def test_a_policy_s_own_settings_win_and_foreign_ones_are_left_to_others() -> None:
    policy = policies.load("gated:full_at=1.75,narrow=3", {"narrow": "4", "max_draft": "6", "multiplier": "3"})

    assert str(policy) == "gated:max_draft=6,narrow=3,full_at=1.75"
    assert policies.load(str(policy)) == policy


def test_none_switches_an_optional_setting_off() -> None:
    assert policies.load("gated:min_tokens_per_round=none") == policies.load("gated")


@given(policy=strategies.any_policies(), request=strategies.requests(), costs=strategies.machines())
def test_two_runs_are_equal(policy: Policy, request: Request, costs: Costs) -> None:
    first, second = (Recording(request).schedule(policy, costs) for _ in range(2))

    assert first == second


@given(policy=strategies.any_policies())
def test_a_policy_survives_the_command_line(policy: Policy) -> None:
    assert policies.load(str(policy)) == policy


def test_every_range_is_finite() -> None:
    domains = [setting.domain for name in NAMES for setting in settings_of(type(policies.load(name))).values()]

    for domain in domains:
        assert not isinstance(domain, Range) or (math.isfinite(domain.low) and math.isfinite(domain.high))


def _lines(kind: type) -> list[str]:
    try:
        return inspect.getsource(kind).splitlines()
    except (OSError, TypeError):
        return []
