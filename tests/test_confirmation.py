"""`tune --confirm`: a recommendation on an engine, scripted first, then a tiny llama by the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import calibration
import policies
import traces
from calibration import Costs, this_machine
from calibration.checkpoints import DEFAULT_DTYPE
from calibration.engine import Engine
from calibration.scripted_engine import ScriptedEngine
from simulator.replay.session import Session, Setup, measure
from simulator.replay.store import Store
from tests import random_checkpoints
from tests.tuning_requests import requests, write
from tuning.cli import tune
from tuning.confirmation import Confirmation, confirmation
from tuning.confirming import profile_of
from tuning.score import Rules

SAID = requests(2, held_out=True)
SHIPPED, FOUND = policies.load("fixed:max_draft=2"), policies.load("fixed:max_draft=7")


def costs(verify_s: float) -> Costs:
    """Return a machine on which every further position of a verify takes so long."""
    widths = {width: 0.010 + verify_s * (width - 1) for width in range(1, 10)}
    return Costs("machine", range(1, 400), widths, launch_s=0.001, read_s=0.002, run_ahead_s=0.004)


def on(
    predicted: Costs, open_engine: Callable[[], Engine], rules: Rules | None = None, repeats: int = 3
) -> Confirmation:
    setup = Setup("said", "scripted", None, SAID, (SHIPPED, FOUND), predicted, repeats=repeats)
    session = Session(setup, Store())
    measure(session, open_engine, lambda name: None)
    return confirmation(session, FOUND, SHIPPED, rules or Rules(floor=0.5), None)


def test_an_engine_of_the_predicted_costs_confirms_the_prediction_itself() -> None:
    machine = costs(0.0005)

    found = on(machine, lambda: ScriptedEngine.of(SAID, machine))

    for column, row in found.predicted.items():
        assert found.measured[column] == pytest.approx(row, rel=1e-9)
        assert all(one == pytest.approx(row, rel=1e-9) for one in found.rounds[column])
    assert found.predicted["plain again"] == (1.0,) * 4
    assert found.gain == pytest.approx(found.predicted_gain) == pytest.approx(found.worst_gain)
    assert found.gain > 1
    assert found.holds


def test_dear_verifies_refute_what_cheap_ones_promised() -> None:
    found = on(costs(0.0005), lambda: ScriptedEngine.of(SAID, costs(0.009)))

    assert found.predicted_gain > 1 > found.gain >= found.worst_gain
    assert not found.holds
    assert f"{found.worst_gain:.3f} times as fast as the shipped constants in the worst of 3 rounds" in str(found)


def test_prose_below_the_floor_refutes_only_where_the_shipped_constants_spare_it() -> None:
    floor = Rules(floor=1.5)  # nothing reaches it

    found = on(costs(0.0005), lambda: ScriptedEngine.of(SAID, costs(0.004)), floor)

    slower = [
        request.id
        for request, ours, theirs in zip(SAID, found.measured["found"], found.measured["shipped"], strict=True)
        if "story" in request.tags and ours < theirs
    ]
    assert slower
    assert list(found.slow) == slower
    assert not found.holds
    assert "slows down held_story" in str(found)


def test_prose_that_is_as_slow_as_was_predicted_refutes_nothing() -> None:
    machine = costs(0.004)

    found = on(machine, lambda: ScriptedEngine.of(SAID, machine), Rules(floor=1.5))

    assert any(ours < theirs for ours, theirs in zip(found.measured["found"], found.measured["shipped"], strict=True))
    assert not found.slow


def test_the_worst_round_is_not_hidden_by_the_others() -> None:
    class Hiccup(ScriptedEngine):
        """One that loses ten seconds in one run."""

        forwards = 0

        def forward(self, tokens: Sequence[int]) -> list[int]:
            self.forwards += 1
            if self.forwards == 30:
                self.work(10.0)
            return super().forward(tokens)

    machine = costs(0.0005)

    found = on(machine, lambda: Hiccup.of(SAID, machine))

    assert found.gain == pytest.approx(found.predicted_gain, rel=0.02)
    assert min(found.worst(column) for column in found.rounds) < 0.9 * min(
        found.overall(row) for row in found.measured.values()
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model, a trace that it can be forced along, and a profile of this machine by which copying pays."""
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("confirm")
    random_checkpoints.make(folder / "tiny", random_checkpoints.LLAMA | {"vocab_size": 1024})
    traces.write(folder / "said.jsonl", {"model": "tiny"}, [*requests(3), *requests(4, held_out=True)])
    widths = list(range(1, 9))
    (folder / "p.yaml").write_text(
        f"""\
format: breakeven-profile/1
name: here
machine: {{chip: {json.dumps(this_machine.machine().chip)}}}
engine: mlx
model: tiny
dtype: float32
measured: unknown
source: made up
bound: device
cost:
  contexts: [16]
  used_for: [1, 512]
  widths: {widths}
  pipelined_s: [0.001]
  sync_s: {[[0.001 + 0.0006 * width] for width in widths]}
prefill: {{fixed_s: 0.0, per_token_s: 0.0, source: made up}}
""",
        encoding="utf-8",
    )
    return folder


def run(folder: Path, *arguments: object) -> Result:
    fixed = [
        "--policy",
        "fixed",
        "--trace",
        folder / "said.jsonl",
        "--profile",
        folder / "p.yaml",
        "--floor",
        0.1,
        "--keep",
        0,
    ]
    fixed += ["--trials", 20, "--workers", 1]
    return CliRunner().invoke(tune, [str(argument) for argument in (*fixed, *arguments)])


@pytest.mark.mlx
def test_the_command_measures_and_says_whether_it_holds(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("--confirm", 2, "--model", tiny / "tiny", "--tokens", 24, "--save", "kept")

    first = run(tiny, *asked, "--json", "-o", "found.yaml")
    again = run(tiny, *asked)

    document = json.loads(first.stdout)
    found = document["confirmation"]
    assert first.exit_code == again.exit_code == (0 if found["holds"] else 3)
    assert document["recommended"] is found["holds"]
    assert [len(rows) for rows in found["rounds"].values()] == [2, 2, 2]
    assert set(found["requests"]) == set(document["split"]["held_out"])
    assert "measured: " in Path("found.yaml").read_text(encoding="utf-8")
    lines = again.stdout.splitlines()
    assert "engine   tiny float32 on " in again.stdout
    assert any(line.startswith("worst round") for line in lines)
    assert ("the engine does not confirm it" in lines[-1]) is not found["holds"]


@pytest.mark.mlx
def test_an_engine_that_fails_or_is_interrupted_gives_no_answer(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("--confirm", 2, "--model", tiny / "tiny", "--tokens", 9, "--save", "kept", "-o", "found.yaml")
    (tmp_path / "kept").write_text("taken")

    failed = run(tiny, *asked)
    (tmp_path / "kept").unlink()
    keep, count = Store.keep, 0

    def interrupting(store: Store, *args: Any) -> None:
        nonlocal count
        count += 1
        if count > 10:  # the first request is whole, and begun with the second
            raise KeyboardInterrupt
        keep(store, *args)

    monkeypatch.setattr(Store, "keep", interrupting)
    stopped = run(tiny, *asked)

    for result, why in (
        (failed, "kept/rounds.jsonl: cannot be written"),
        (stopped, "interrupted: 56 runs are missing"),
    ):
        assert result.exit_code == 1
        assert result.stderr.startswith(why)
        assert result.stdout.splitlines()[-1].startswith("fixed: no answer; ")
        assert f"not confirmed: {why}" in result.stdout
        assert not Path("found.yaml").exists()


REFUSED = {
    ("--model", "smollm2"): (2, "tune: --model needs --confirm; see tune --help\n"),
    ("--tokens", "3"): (2, "tune: --tokens needs --confirm; see tune --help\n"),
    ("--confirm", "2"): (2, "tune: --confirm needs --model; see tune --help\n"),
    ("--confirm", "2", "--model", "nowhere"): (
        1,
        "no model named 'nowhere', nor such a directory (named: smollm2)\n",
    ),
    ("--confirm", "2", "--model", "smollm2"): (
        1,
        f"--confirm: none of the profiles is of this machine ({this_machine.machine().chip!r}); --allow-mismatch takes "
        "any\n",
    ),
    ("--confirm", "2", "--model", "smollm2", "--serve"): (
        2,
        "tune: --confirm and --serve: the engine decodes one request at a time; see tune --help\n",
    ),
}


@pytest.mark.parametrize(
    ("dtype", "name"), [("float32", "third"), ("q4", "second")], ids=["its dtype", "any dtype of this machine"]
)
def test_the_engine_is_held_against_the_profile_of_its_machine_and_dtype(dtype: str, name: str) -> None:
    here = replace(calibration.shipped("gb10-qwen3-8b-4bit"), machine=this_machine.machine())
    profiles = (
        calibration.shipped("gb10-qwen3-8b-4bit"),
        replace(here, name="second", dtype=DEFAULT_DTYPE),
        replace(here, name="third", dtype="float32"),
    )

    assert profile_of(profiles, dtype, allow_mismatch=False).name == name


@pytest.mark.parametrize("arguments", REFUSED)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = write(tmp_path / "said.jsonl", requests(3), SAID)

    result = CliRunner().invoke(tune, ["--policy", "fixed", "--trace", said, *arguments])

    assert (result.exit_code, result.stderr) == REFUSED[arguments]
    assert not Path("tune.journal").exists()


def test_nothing_recommended_is_nothing_to_confirm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = write(tmp_path / "said.jsonl", requests(3), SAID[:3])

    result = CliRunner().invoke(
        tune,
        [
            *[
                "--policy",
                "fixed",
                "--floor",
                "0.1",
                "--trials",
                "2",
                "--workers",
                "1",
                "--confirm",
                "1",
                "--model",
                "smollm2",
                "--allow-mismatch",
                "--trace",
            ],
            said,
        ],
    )

    assert (result.exit_code, result.stderr) == (0, "nothing is recommended, so there is nothing to confirm\n")


def test_two_requests_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = write(tmp_path / "said.jsonl", requests(3), SAID)
    other = write(tmp_path / "other.jsonl", requests(2, held_out=True, seed=1))

    asked = ["--policy", "fixed", "--confirm", "1", "--model", "smollm2"]
    result = CliRunner().invoke(tune, [*asked, "--trace", said, "--trace", other])

    assert (result.exit_code, result.stderr) == (
        1,
        f"--confirm: two held-out requests are called {SAID[0].id!r}\n",
    )
