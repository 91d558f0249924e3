"""Shipped profiles say what was published, and a profile written is the profile read."""

from __future__ import annotations

from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest

import calibration
from calibration import Profile, ProfileError
from calibration.cost_table import CostTable
from calibration.prefill import Prefill, PrefillTable
from calibration.provenance import Machine
from tests.profile_texts import GOOD, refusal

# milliseconds of the pipelined step, and the ratio to it of every width, as published beside the milliseconds
RATIOS = {
    "gb10-qwen3-1.7b-4bit": (5.174, [1.23, 1.37, 1.76, 2.43, 3.04, 3.47, 3.84, 3.91, 3.89, 4.02]),
    "gb10-qwen3-4b-4bit": (11.566, [1.11, 1.25, 1.61, 2.18, 2.96, 3.35, 3.81, 3.95, 3.96, 4.00]),
    "gb10-qwen3-8b-4bit": (18.998, [1.07, 1.15, 1.59, 2.10, 2.86, 3.37, 3.85, 3.30, 3.28, 3.28]),
    "gb10-llama-3.1-8b-4bit": (18.773, [1.08, 1.16, 1.61, 2.08, 2.80, 3.24, 3.69, 2.95, 2.95, 2.97]),
}
# milliseconds of the widths 1 to 10 added up as published: catches a slip too small for the ratios
SUMS = {
    "gb10-qwen3-1.7b-4bit": 149.865,
    "gb10-qwen3-4b-4bit": 325.824,
    "gb10-qwen3-8b-4bit": 491.343,
    "gb10-llama-3.1-8b-4bit": 460.484,
}

GRID = CostTable(
    contexts=(1, 512, 2048),
    used_for=(1, 2048),
    widths=(1, 2),
    pipelined_s=(0.0101, 0.0112, 0.0145),
    sync_s=((0.0111, 0.0123, 0.0156), (0.0125, 0.0138, 0.0172)),
    pipelined_spread_s=(0.00001, 0.00002, 0.00003),
    sync_spread_s=((0.00001, 0.00002, 0.00003), (0.0, 0.00002, 0.00003)),
    pipelined_runs=20,
    sync_runs=40,
)
MINE = Profile(
    name="mine",
    machine=Machine("A chip: the second", 4, "16 GiB", "an os"),
    engine="an engine 1.0",
    model="A-Model",
    dtype="4bit",
    measured="2026-10-02",
    source="calibrate --model 'x' # all of it",
    bound="device",
    cost=GRID,
    prefill=PrefillTable((16, 512, 2048), (0.02, 0.1, 0.5), "measured"),
    notes=("off", 'says "so"', "naïve µs"),
    launch_s=0.0004,
    read_s=0.00065,
    run_ahead_s=0.02,
    host_work_s=0.00002,
)


def load(folder: Path, text: str) -> Profile:
    path = folder / "p.yaml"
    path.write_text(text, encoding="utf-8")
    return calibration.load(str(path))


@pytest.mark.parametrize("name", RATIOS)
def test_the_published_ratios_follow_from_the_shipped_times(name: str) -> None:
    costs = calibration.load(name).costs()
    step_ms, ratios = RATIOS[name]

    assert costs.step_s(300) * 1000 == pytest.approx(step_ms)
    # the ratios were rounded from times with more digits than were published
    assert [costs.sync_s(width, 300) / costs.step_s(300) for width in range(1, 11)] == pytest.approx(ratios, abs=0.0055)
    assert sum(costs.sync_s(width, 300) * 1000 for width in range(1, 11)) == pytest.approx(SUMS[name], abs=1e-6)


def test_the_8b_model_is_cheaper_at_width_8_than_at_width_7() -> None:
    costs = calibration.load("gb10-qwen3-8b-4bit").costs()

    assert costs.sync_s(7, 300) == pytest.approx(0.073161)
    assert costs.sync_s(8, 300) == pytest.approx(0.062687)


def test_the_m4_pro_has_the_two_published_figures_and_the_derived_one() -> None:
    costs = calibration.load("m4-pro-qwen3-1.7b-4bit").costs()

    assert costs.step_s(300) == 0.0053
    assert round(costs.sync_s(1, 300), 4) == round(0.0053 * 192 / 169, 4) == 0.006
    assert costs.sync_s(8, 300) == pytest.approx(0.0136)
    assert costs.prefill_s(1000) == 0.0
    assert "prefill: not published; counted as 0 s" in costs.notes


@pytest.mark.parametrize(
    ("name", "per_token_s"),
    [
        ("gb10-qwen3-1.7b-4bit", 0.000073),
        ("gb10-qwen3-4b-4bit", 0.000164),
        ("gb10-qwen3-8b-4bit", 0.000304),
        ("gb10-llama-3.1-8b-4bit", 0.000304),
    ],
)
def test_a_borrowed_prefill_is_said_to_be_borrowed(name: str, per_token_s: float) -> None:
    profile = calibration.load(name)

    assert profile.costs().prefill_s(100) == pytest.approx(100 * per_token_s)
    assert profile.prefill.source.startswith("borrowed, from ")


@pytest.mark.parametrize("name", calibration.names())
def test_a_shipped_profile_is_named_as_its_file_and_laid_out_as_written(name: str, tmp_path: Path) -> None:
    profile = calibration.load(name)
    profile.write(tmp_path / "again.yaml")

    shipped = Path(calibration.__file__).parent / "profiles" / f"{name}.yaml"
    assert profile.name == name
    assert (tmp_path / "again.yaml").read_bytes() == shipped.read_bytes()


def test_the_published_profiles_are_shipped() -> None:
    assert {*RATIOS, "m4-pro-qwen3-1.7b-4bit"} <= set(calibration.names())


@pytest.mark.parametrize(
    "profile",
    [
        MINE,
        replace(MINE, notes=(), launch_s=None, read_s=None, run_ahead_s=None, host_work_s=0.0),
        replace(MINE, bound="host", launch_s=0.005, read_s=0.0051, measured="unknown", machine=Machine("chip")),
        replace(MINE, prefill=Prefill(1e-9, 5e-05, "a line")),
    ],
)
def test_a_profile_written_is_the_profile_read(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    profile.write(path)

    assert calibration.load(str(path)) == profile
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


def test_a_profile_is_written_in_the_order_of_its_format(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    MINE.write(path)

    assert path.read_text() == (
        "# One machine, one model. Times are in seconds.\n"
        "format: breakeven-profile/1\n"
        "name: mine\n"
        "machine:\n"
        '  chip: "A chip: the second"\n'
        "  cores: 4\n"
        '  memory: "16 GiB"\n'
        '  os: "an os"\n'
        'engine: "an engine 1.0"\n'
        "model: A-Model\n"
        'dtype: "4bit"\n'
        'measured: "2026-10-02"\n'
        "source: \"calibrate --model 'x' # all of it\"\n"
        "bound: device\n"
        "notes:\n"
        '  - "off"\n'
        '  - "says \\"so\\""\n'
        '  - "naïve µs"\n'
        "cost:\n"
        "  contexts: [1, 512, 2048]\n"
        "  used_for: [1, 2048]\n"
        "  widths: [1, 2]\n"
        "  pipelined_s: [0.0101, 0.0112, 0.0145]\n"
        "  sync_s:\n"
        "    - [0.0111, 0.0123, 0.0156]\n"
        "    - [0.0125, 0.0138, 0.0172]\n"
        "  pipelined_spread_s: [0.00001, 0.00002, 0.00003]\n"
        "  sync_spread_s:\n"
        "    - [0.00001, 0.00002, 0.00003]\n"
        "    - [0.0, 0.00002, 0.00003]\n"
        "  pipelined_runs: 20\n"
        "  sync_runs: 40\n"
        "prefill:\n"
        "  tokens: [16, 512, 2048]\n"
        "  seconds: [0.02, 0.1, 0.5]\n"
        "  source: measured\n"
        "launch_s: 0.0004\n"
        "read_s: 0.00065\n"
        "run_ahead_s: 0.02\n"
        "host_work_s: 0.00002\n"
    )


def test_a_profile_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "taken.yaml"
    path.mkdir()

    with pytest.raises(ProfileError) as refused:
        MINE.write(path)

    assert str(refused.value) == f"{path}: cannot be written (Is a directory)"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_comes_before_the_shipped_profile_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "gb10-qwen3-8b-4bit").write_text(GOOD)

    with chdir(tmp_path):
        assert calibration.load("gb10-qwen3-8b-4bit").name == "mine"


def test_a_folder_does_not_hide_the_shipped_profile_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "gb10-qwen3-8b-4bit").mkdir()

    with chdir(tmp_path):
        assert calibration.load("gb10-qwen3-8b-4bit").name == "gb10-qwen3-8b-4bit"


def test_a_synchronous_step_a_little_below_the_pipelined_one_is_stored_as_that(tmp_path: Path) -> None:
    # 0.1 ms below, the larger spread 0.06 ms
    text = GOOD.replace("[[0.0063]", "[[0.0051]").replace("cost:\n", "cost:\n  pipelined_spread_s: [0.00006]\n")
    profile = load(tmp_path, text)

    note = (
        "the synchronous step at context 300 was measured at 0.0051 s, below the pipelined 0.0052 s by less than "
        "twice their spread; it is stored as the pipelined one"
    )
    assert profile.cost.sync_s[0] == (0.0052,)
    assert profile.notes == ("one", "two", note)
    assert profile.costs().overlap_s(300) == 0.0


def test_a_synchronous_step_below_by_twice_the_spread_is_refused(tmp_path: Path) -> None:
    # 0.5 s below, the spread 0.25 s; powers of two, so that the bound is met exactly
    text = GOOD.replace("[0.0052]", "[4.0]").replace("[[0.0063]", "[[3.5]")

    assert refusal(tmp_path, text.replace("cost:\n", "cost:\n  pipelined_spread_s: [0.25]\n")) == (
        ": cost.sync_s: width 1 at context 300 is below the pipelined step by twice their spread or more "
        "(3.5 s against 4 s)"
    )
