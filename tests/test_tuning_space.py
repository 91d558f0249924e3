"""The search space: every value a setting may take, drawn, written and read back; and how it is narrowed."""

from __future__ import annotations

import optuna
import pytest

import policies
from policies import PolicyError
from tuning.dimension import Value
from tuning.errors import TuningError
from tuning.space import Space, changed, set_line, space


def draws(found: Space, count: int = 60) -> list[dict[str, Value]]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [found.draw(study.ask()) for _ in range(count)]


@pytest.mark.parametrize("name", [name for name in policies.names() if name != "plain"])
def test_every_draw_is_a_policy_and_every_setting_is_drawn(name: str) -> None:
    found = space(name, [], [], widest=10)

    drawn = draws(found)

    assert set(drawn[0]) == set(policies.load(name).settings)
    for settings in drawn:
        assert found.policy(settings).settings == settings


@pytest.mark.parametrize("name", [name for name in policies.names() if name != "plain"])
def test_the_shipped_constants_can_be_drawn(name: str) -> None:
    found = space(name, [], [], widest=10)
    parameters = found.drawn(found.defaults)

    assert parameters is not None
    assert found.draw(optuna.trial.FixedTrial(parameters)) == found.defaults == policies.load(name).settings


def test_a_block_is_searched_up_to_what_has_a_cost() -> None:
    found = space("gated", [], [], widest=5)

    assert max(int(str(settings["max_draft"])) for settings in draws(found)) == 4
    assert found.notes == (
        "max_draft is searched up to 4: the profiles have costs of widths up to 5",
        "the shipped constants are held to blocks of 4 too",
    )
    assert found.shipped == policies.load("gated:max_draft=4")
    assert space("gated", ["max_draft=3"], [], widest=5).shipped == found.shipped


def test_what_is_fixed_is_not_searched_and_a_range_is_kept_to() -> None:
    found = space("gated", ["narrow=3"], ["full_at=1..2", "misses=2,4", "match=earliest,latest"], widest=10)
    drawn = draws(found)

    assert "narrow" not in drawn[0]
    assert found.policy(drawn[0]).settings["narrow"] == 3
    assert {settings["misses"] for settings in drawn} == {2, 4}
    assert all(1 <= float(str(settings["full_at"])) <= 2 for settings in drawn)


def test_the_shortest_suffix_is_never_longer_than_the_longest() -> None:
    searched = draws(space("fixed", [], [], widest=10))
    longest_fixed = draws(space("fixed", ["ngram_max=3"], [], widest=10))

    assert all(int(str(one["ngram_min"])) <= int(str(one["ngram_max"])) for one in searched)
    assert all(int(str(one["ngram_min"])) <= 3 for one in longest_fixed)


def test_the_ends_of_the_suffix_are_mended_within_their_ranges_only() -> None:
    found = space("fixed", [], ["ngram_max=2,3,4", "ngram_min=1..8"], widest=10)
    drawn = draws(found)

    assert {one["ngram_max"] for one in drawn} == {2, 3, 4}
    assert all(int(str(one["ngram_min"])) <= int(str(one["ngram_max"])) for one in drawn)
    neither = space("fixed", [], ["ngram_max=2,3", "ngram_min=5,6"], widest=10)
    with pytest.raises(PolicyError, match="ngram_max must be at least ngram_min"):
        neither.policy(draws(neither)[0])
    longer = space("fixed", ["ngram_min=5"], [], widest=10)
    assert longer.possible(longer.defaults)["ngram_max"] == 5


def test_numbers_are_drawn_as_they_are_printed() -> None:
    values = {str(settings["ema_weight"]) for settings in draws(space("gated", [], [], widest=10))}

    assert max(len(value.replace(".", "").lstrip("0")) for value in values) == 3


def test_a_grid_has_every_value_of_a_list_and_five_of_a_range() -> None:
    found = space(
        "graded",
        [f"{name}={value}" for name, value in policies.load("graded").settings.items() if name not in GRID],
        ["multiplier=1,1.5,2", "misses=2..5", "longest_pause=0..1000"],
        widest=10,
    )

    assert found.grid == {
        "multiplier": [1.0, 1.5, 2.0],
        "misses": [2, 3, 4, 5],
        "longest_pause + 1": [1, 6, 32, 178, 1001],  # on a logarithmic scale: 1001 ** (k / 4)
    }


GRID = ("multiplier", "misses", "longest_pause")


@pytest.mark.parametrize(
    ("fixes", "ranges", "words"),
    [
        (["narow=3"], [], "--fix narow: policy 'gated' has no such setting (settings: pipeline_after, "),
        ([], ["narrow=0..3"], "narrow must be between 1 and 64 (got 0)"),
        (["narrow=x"], [], "narrow must be a whole number (got 'x')"),
        (["narrow"], [], "--fix: a setting is written NAME=VALUE (got 'narrow')"),
    ],
)
def test_a_setting_that_is_none_is_refused(fixes: list[str], ranges: list[str], words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        space("gated", fixes, ranges, widest=10)

    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("fixes", "ranges", "words"),
    [
        (["narrow=3"], ["narrow=1..3"], "--range narrow: is fixed too (--fix narrow=3)"),
        ([], ["narrow=3..2"], "--range narrow: the low end must be below the high one (got '3..2')"),
        ([], ["narrow=3"], "--range narrow: one value is no range (got '3'); use --fix"),
        ([], ["match=a..b"], "--range match: must be words, as in latest,earliest (got 'a..b')"),
        ([], ["max_draft=20..30"], "max_draft: 20..30 needs verifies of width 21 and wider, and the profiles have "),
        (
            [],
            ["min_tokens_per_round=none..3"],
            "--range min_tokens_per_round: must be LOW..HIGH or values (got 'none..3')",
        ),
    ],
)
def test_a_range_that_is_none_is_refused(fixes: list[str], ranges: list[str], words: str) -> None:
    with pytest.raises(TuningError) as refused:
        space("gated", fixes, ranges, widest=10)

    assert str(refused.value).startswith(words)


def test_a_policy_without_settings_to_search_is_refused() -> None:
    with pytest.raises(TuningError, match=r"^policy 'plain' has nothing to search"):
        space("plain", [], [], widest=10)
    with pytest.raises(PolicyError, match=r"^no policy named 'gatd' \(have: .*\); did you mean 'gated'\?"):
        space("gatd", [], [], widest=10)


def test_changes_are_written_as_a_command_line_takes_them() -> None:
    policy = policies.load("gated:full_at=1.75,min_tokens_per_round=2.5")

    assert set_line(changed(policy.settings, type(policy))) == "--set full_at=1.75 --set min_tokens_per_round=2.5"
