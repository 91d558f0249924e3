"""What a profile says of servers: how it is read, what it comes to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibration
from calibration import ProfileError
from calibration.server_costs import StorageKind
from tests.profile_texts import GOOD, refusal

SERVING = """\
serving:
  dense:
    steps:
      - {rows: 1, contexts: [100, 300], used_for: [50, 400], step_s: [0.005, 0.007], source: published}
      - {rows: 2, contexts: [100], used_for: [1, 400], step_s: [0.009], assumed: a guess}
    verify:
      - {width: 2, contexts: [100], used_for: [1, 400], sync_s: [0.0081], source: measured}
    prefill: {fixed_s: 0.02, per_token_s: 0.0, source: a server}
  paged:
    steps:
      - {rows: 1, contexts: [100], used_for: [1, 3000], step_s: [0.0062], source: published}
    verify: {factor: 2.0, assumed: it may be twice as much}
"""


def server_costs(folder: Path, storage: StorageKind, serving: str = SERVING) -> calibration.ServerCosts:
    path = folder / "mine.yaml"
    path.write_text(GOOD + serving)
    profile = calibration.load(str(path))
    return profile.server_costs(profile.costs(), storage)


def test_steps_are_linear_between_their_contexts_and_flat_outside(tmp_path: Path) -> None:
    costs = server_costs(tmp_path, "dense")

    assert [costs.step_s(1, context) for context in (50, 100, 200, 300, 400)] == pytest.approx(
        [0.005, 0.005, 0.006, 0.007, 0.007]
    )
    assert costs.step_s(2, 333) == 0.009


def test_a_verify_leaves_launch_and_read_to_the_host(tmp_path: Path) -> None:
    # In GOOD a synchronous step of 6.3 ms stands beside a pipelined one of 5.2 ms.
    assert server_costs(tmp_path, "dense").verify_s(2, 100) == pytest.approx(0.0081 - 0.0011)


def test_an_assumed_verify_is_the_tables_and_what_a_step_costs_more(tmp_path: Path) -> None:
    costs = server_costs(tmp_path, "paged")

    # Width 2: 7.1 - 1.1 ms of device time, and 6.2 ms a step instead of 5.2; all of it twice.
    assert costs.verify_s(2, 100) == pytest.approx(2 * (0.0060 + 0.0010))
    assert costs.verify_s(2, 3000) == pytest.approx(2 * (0.0060 + 0.0010))


def test_prefill_on_a_storage_replaces_the_profiles_own(tmp_path: Path) -> None:
    assert server_costs(tmp_path, "dense").prefill_s(10) == 0.02
    assert server_costs(tmp_path, "paged").prefill_s(10) == pytest.approx(0.001)


def test_every_assumption_in_use_is_a_note(tmp_path: Path) -> None:
    dense, paged = (server_costs(tmp_path, storage).notes(2) for storage in ("dense", "paged"))

    assert dense[-2:] == ["assumed, a step of 2 rows on dense storage: a guess", "prefill on dense storage: a server"]
    assert paged[-1] == "assumed, verifies on paged storage: it may be twice as much, times 2"
    assert "assumed, a step of 2 rows on dense storage: a guess" not in server_costs(tmp_path, "dense").notes(1)


def test_a_row_alone_on_dense_storage_costs_what_one_request_does(tmp_path: Path) -> None:
    costs = server_costs(tmp_path, "dense", serving="")

    assert (costs.step_s(1, 5), costs.verify_s(2, 5)) == (costs.costs.device_s(1, 5), costs.costs.device_s(2, 5))


@pytest.mark.parametrize(
    ("storage", "rows", "context", "message"),
    [
        ("dense", 3, 100, "profile mine has no cost of a step of 3 rows on dense storage (rows: 1, 2)"),
        (
            "dense",
            1,
            49,
            "context 49 is outside the 50..400 for which profile mine has the cost of a step of 1 row on dense storage",
        ),
        (
            "paged",
            1,
            3001,
            "context 3001 is outside the 1..3000 for which profile mine has the cost of a step of 1 row on paged "
            "storage",
        ),
    ],
)
def test_a_step_without_a_cost_is_said(
    tmp_path: Path, storage: StorageKind, rows: int, context: int, message: str
) -> None:
    costs = server_costs(tmp_path, storage)

    with pytest.raises(ProfileError) as refused:
        costs.step_s(rows, context)

    assert str(refused.value) == message


def test_a_verify_without_a_cost_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as refused:
        server_costs(tmp_path, "dense").verify_s(8, 100)

    assert str(refused.value) == "profile mine has no cost of a verify of width 8 on dense storage (widths: 2)"


def test_the_section_is_written_as_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD + SERVING)
    profile = calibration.load(str(path))

    profile.write(tmp_path / "again.yaml")

    assert calibration.load(str(tmp_path / "again.yaml")) == profile


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "rows: 1, contexts: [100, 3",
            "rows: 0, contexts: [100, 3",
            "steps[0].rows: must be between 1 and 1024 (got 0)",
        ),
        (
            "used_for: [50, 400], step_s",
            "used_for: [150, 400], step_s",
            "steps[0].used_for: must include every measured context and be within 0..1048576 (got 150..400)",
        ),
        (
            "[0.005, 0.007]",
            "[0.005]",
            "steps[0].step_s: must have one entry per context (got 1 for 2)",
        ),
        ("[0.005, 0.007]", "[0.005, -1]", "steps[0].step_s[1]: must be above 0 and below 1000 s (got -1.0)"),
        ("rows: 2", "rows: 1", "steps: rows: has 1 twice"),
        ("assumed: a guess", "assumed: a guess, source: x", "steps[1]: must have either a source or what is assumed"),
        (", assumed: a guess", "", "steps[1]: must have either a source or what is assumed"),
        (
            "width: 2",
            "widht: 2",
            "verify[0]: unknown key 'widht' (known: width, contexts, used_for, sync_s, source, assumed); "
            "did you mean 'width'?",
        ),
        ("width: 2", "width: 99", "verify[0].width: must be between 1 and 65 (got 99)"),
    ],
)
def test_what_is_wrong_with_the_section_is_said_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert SERVING.count(old) == 1 or old == "width: 2"

    assert refusal(tmp_path, GOOD + SERVING.replace(old, new)) == f": serving.dense.{message}"


def test_a_factor_out_of_bounds_and_a_host_bound_machine_are_refused(tmp_path: Path) -> None:
    factor = SERVING.replace("factor: 2.0", "factor: 0")
    host_bound = GOOD.replace("bound: device", "bound: host") + SERVING

    assert refusal(tmp_path, GOOD + factor) == ": serving.paged.verify.factor: must be between 0.1 and 10 (got 0.0)"
    assert refusal(tmp_path, host_bound) == (
        ": serving: needs bound: device; a host-bound step does not tell what the device takes"
    )


def test_the_published_steps_of_a_gb10_are_shipped() -> None:
    profile = calibration.load("gb10-qwen3-1.7b-4bit")
    paged = profile.server_costs(profile.costs(), "paged")

    # 129 forwards for the 127 tokens after the first, at 137.7, 35.7 and 13.0 tokens/s for each client.
    for rows, rate in ((1, 137.7), (4, 35.7), (8, 13.0)):
        assert paged.step_s(rows, 576) == pytest.approx(127 / 129 / rate, rel=5e-4)
    measured = [step.size for step in paged.table.steps if step.source]
    assert measured == [1, 4, 8]
