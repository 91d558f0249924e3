"""`calibrate` as a user sees it: measuring a tiny random llama, and reading what other programs measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click.testing
import pytest

import calibration
from calibration import Costs, ProfileError, this_machine
from calibration.cache import sha256
from calibration.measuring.calibrated import calibrated
from calibration.measuring.cli import calibrate
from calibration.measuring.output import Output
from calibration.measuring.plan import Plan
from calibration.measuring.samples import read
from calibration.prefill import Prefill
from calibration.scripted_engine import ScriptedEngine
from tests import random_checkpoints


def run(*arguments: object) -> click.testing.Result:
    return click.testing.CliRunner().invoke(calibrate, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    return random_checkpoints.make(tmp_path_factory.mktemp("calibrate") / "tiny")


SHORT = ("--widths", "1,2,4", "--contexts", "16,64", "--rounds", 3)


def measured(*arguments: object) -> click.testing.Result:
    """Calibrate, again where a busy machine made the few samples contradict each other, which is refused."""
    for _ in range(12):
        result = run(*arguments)
        if result.exit_code == 0:
            break
    return result


@pytest.mark.mlx
def test_a_profile_of_this_machine_is_written_with_its_samples(tiny: Path, tmp_path: Path) -> None:
    result = measured("--model", tiny, *SHORT, "--host-work", "2ms", "-o", tmp_path / "p.yaml")

    assert result.exit_code == 0, result.stderr
    profile = calibration.load(str(tmp_path / "p.yaml"))
    assert (profile.name, profile.model, profile.dtype) == ("p", "tiny", "float32")
    assert profile.machine == this_machine.machine()
    assert (profile.cost.widths, profile.cost.contexts, profile.cost.used_for) == ((1, 2, 4), (16, 64), (1, 64))
    assert (profile.cost.sync_runs, profile.cost.pipelined_runs, profile.host_work_s) == (3, 3, 0.002)
    assert profile.provenance is not None
    assert profile.provenance.samples == "p.samples.json"
    assert profile.provenance.activations == "float32"
    assert profile.provenance.weights_sha256 == sha256(tiny / "model.safetensors")
    assert profile.cost.first_use_s is not None
    assert len(read(tmp_path / "p.samples.json").of("sync")) == 6
    assert "the pipelined step with host work" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("a forward of width 4 costs ")


@pytest.mark.mlx
def test_one_document_is_printed(tiny: Path, tmp_path: Path) -> None:
    result = measured("--model", tiny, *SHORT, "-o", tmp_path / "p.yaml", "--json")

    found = json.loads(result.stdout)
    assert found["cost"]["widths"] == [1, 2, 4]
    assert {"predicted_s", "measured_s"} == found["checks"]["a stretch of 4 steps, drained"].keys()
    assert isinstance(found["warnings"], list)


@pytest.mark.mlx
def test_a_context_that_the_model_does_not_have_is_refused(tiny: Path, tmp_path: Path) -> None:
    result = run("--model", tiny, "-o", tmp_path / "p.yaml")

    assert result.exit_code == 1
    assert result.stderr == "the model was made for contexts of up to 512 positions (this run needs 2314)\n"


@pytest.mark.mlx
@pytest.mark.parametrize(
    ("config", "kind"),
    [(random_checkpoints.SLIDING, "RotatingKVCache"), (random_checkpoints.RECURRENT, "ArraysCache")],
    ids=["sliding", "recurrent"],
)
def test_a_model_that_cannot_roll_back_is_refused(config: dict[str, object], kind: str, tmp_path: Path) -> None:
    pytest.importorskip("mlx.core", reason="mlx is not installed", exc_type=ImportError)
    model = random_checkpoints.make(tmp_path / "tiny", config)

    result = run("--model", model, *SHORT, "-o", tmp_path / "p.yaml")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"the model cannot roll back rejected proposals: a layer's {kind} ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "p.yaml").exists()


MLXCEL = """\
Loading model...
pipelined step: 5.174 ms
sync width  1: 6.343 ms = 1.23 pipelined steps
sync width  2: 7.112 ms = 1.37 pipelined steps
sync width 10: 20.814 ms = 4.02 pipelined steps
"""
ABOUT = ("--model", "Qwen3-1.7B", "--dtype", "4bit", "--chip", "A chip")


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "printed").write_text(text, encoding="utf-8")
    return tmp_path / "printed"


def imported(tmp_path: Path, source: str, text: str, *arguments: str) -> click.testing.Result:
    fixed = ("--import", written(tmp_path, text), "--from", source, "-o", tmp_path / "p.yaml")
    return run(*fixed, *ABOUT, *arguments)


def test_mlxcels_printout_becomes_a_profile(tmp_path: Path) -> None:
    result = imported(tmp_path, "mlxcel", MLXCEL, "--measured", "2026-10-02")

    assert (result.exit_code, result.stderr) == (0, "")
    profile = calibration.load(str(tmp_path / "p.yaml"))
    assert (profile.model, profile.dtype, profile.machine.chip) == ("Qwen3-1.7B", "4bit", "A chip")
    assert profile.measured == "2026-10-02"
    assert profile.cost.widths == (1, 2, 10)
    assert profile.cost.pipelined_s == (0.005174,)
    assert profile.cost.sync_s == ((0.006343,), (0.007112,), (0.020814,))
    assert (profile.cost.contexts, profile.cost.used_for) == ((300,), (1, 2048))


BENCH = """\
|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |    128 |    1 |    256 |    0.128 |  1000.00 |    3.200 |    40.00 |    3.328 |    76.92 |
|   128 |    128 |    2 |    512 |    0.198 |  1295.19 |    5.120 |    50.00 |    5.318 |    96.28 |
|   512 |    128 |    1 |    640 |    0.512 |  1000.00 |    3.840 |    33.33 |    4.352 |   147.06 |
|   512 |    128 |    2 |   1280 |    1.024 |  1000.00 |    5.760 |    44.44 |    6.784 |   188.68 |
"""


def test_llama_batched_benchs_table_becomes_a_profile(tmp_path: Path) -> None:
    result = imported(tmp_path, "llama-batched-bench", BENCH)

    assert (result.exit_code, result.stderr) == (0, "")
    table = calibration.load(str(tmp_path / "p.yaml")).cost
    # Half of what was generated lies behind the prompt on average: 128 + 64 and 512 + 64.
    assert (table.contexts, table.used_for, table.widths) == ((192, 576), (1, 576), (1, 2))
    assert table.pipelined_s == (0.025, 0.03)
    assert table.sync_s == ((0.025, 0.03), (0.04, 0.045))
    assert calibration.load(str(tmp_path / "p.yaml")).prefill.seconds_for(100) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("model", "dtype", "pipelined_s"),
    [("mlx-community/Small", "4bit", 0.005174), ("small", "unknown", 0.005), ("Large-4bit", "4bit", 0.006)],
)
def test_of_several_printouts_the_models_own_is_taken(
    tmp_path: Path, model: str, dtype: str, pipelined_s: float
) -> None:
    printed = [f"# on a chip\n## small-4bit\n{MLXCEL}"]
    printed += [f"## {name}\n{MLXCEL.replace('5.174', ms)}" for name, ms in (("small", "5.0"), ("large-4bit", "6.0"))]

    result = imported(tmp_path, "mlxcel", "\ufeff" + "".join(printed), "--model", model, "--dtype", dtype)

    assert (result.exit_code, result.stderr) == (0, "")
    assert calibration.load(str(tmp_path / "p.yaml")).cost.pipelined_s == (pipelined_s,)


def test_of_several_printouts_one_must_be_named(tmp_path: Path) -> None:
    result = imported(tmp_path, "mlxcel", f"## small-4bit\n{MLXCEL}## large-4bit\n{MLXCEL}")

    assert (result.exit_code, result.stderr) == (
        1,
        f"{tmp_path}/printed: holds 2 printouts (small-4bit, large-4bit); --model and --dtype must name one, as MODEL "
        "or MODEL-DTYPE (got Qwen3-1.7B and 4bit)\n",
    )


def bench(*rows: tuple[int, int, int, float]) -> str:
    named = [{"pp": pp, "tg": tg, "pl": pl, "t_pp": 0.001 * pp, "t_tg": t_tg} for pp, tg, pl, t_tg in rows]
    return "\n".join(map(json.dumps, named))


def test_what_llama_batched_bench_had_no_room_for_is_left_out(tmp_path: Path) -> None:
    rows = [(128, 128, 1, 2.56), (128, 128, 2, 5.12), (128, 128, 4, 7.68), (512, 128, 1, 3.84), (512, 128, 2, 5.76)]

    imported(tmp_path, "llama-batched-bench", bench(*rows))

    profile = calibration.load(str(tmp_path / "p.yaml"))
    assert profile.cost.sync_s == ((0.02, 0.03), (0.04, 0.045))
    assert "B 4 is left out, for it was not measured for every PP and TG" in profile.notes


def test_rows_of_llama_batched_bench_are_taken_by_context_and_runs_by_their_median(tmp_path: Path) -> None:
    # 128 and 512 come to as many positions as 256 and 256, and to more than 256 and 128.
    rows = [(128, 512, 1, 10.24), (256, 128, 1, 1.28), (256, 256, 1, 7.68), (256, 256, 1, 10.24)]
    wider = [(pp, tg, 2, 2 * t_tg) for pp, tg, _, t_tg in rows]

    imported(tmp_path, "llama-batched-bench", bench(*rows, *wider))

    table = calibration.load(str(tmp_path / "p.yaml")).cost
    assert (table.contexts, table.pipelined_s) == ((320, 384), (0.01, 0.03))
    assert table.sync_s[1] == (0.02, 0.06)


def test_without_prompts_llama_batched_bench_says_nothing_of_them(tmp_path: Path) -> None:
    imported(tmp_path, "llama-batched-bench", bench((0, 128, 1, 2.56), (0, 128, 2, 5.12)))

    assert calibration.load(str(tmp_path / "p.yaml")).prefill.seconds_for(100) == 0


def test_llama_batched_benchs_lines_of_json_become_the_same(tmp_path: Path) -> None:
    rows = [(128, 1, 0.128, 3.2), (128, 2, 0.198, 5.12), (512, 1, 0.512, 3.84), (512, 2, 1.024, 5.76)]
    lines = [json.dumps({"pp": pp, "tg": 128, "pl": pl, "t_pp": t_pp, "t_tg": t_tg}) for pp, pl, t_pp, t_tg in rows]
    imported(tmp_path, "llama-batched-bench", BENCH)
    table = calibration.load(str(tmp_path / "p.yaml")).cost

    imported(tmp_path, "llama-batched-bench", "\n".join(lines), "--force")

    assert calibration.load(str(tmp_path / "p.yaml")).cost == table


@pytest.mark.parametrize("beside", [{}, {"warnings": [], "checks": {}}, {"notes": None}])
def test_json_with_the_keys_of_a_profile_becomes_one(tmp_path: Path, beside: dict[str, object]) -> None:
    shipped = calibration.load("gb10-qwen3-8b-4bit")
    document = shipped.document() | beside

    result = run(
        *("--import", written(tmp_path, json.dumps(document, sort_keys=True)), "--from", "json"),
        *("-o", tmp_path / "p.yaml"),
    )

    assert result.exit_code == 0
    assert calibration.load(str(tmp_path / "p.yaml")) == shipped


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        (
            "mlxcel",
            "nothing",
            "is no printout of mlxcel's verify_width_cost (one line 'pipelined step: X ms' and lines "
            "'sync width W: X ms' are wanted; got 0 and 0)",
        ),
        (
            "mlxcel",
            MLXCEL.replace("5.174", "5.1.74"),
            "'5.1.74' is no number of milliseconds",
        ),
        ("mlxcel", MLXCEL.replace("7.112", "7.1.12"), "'7.1.12' is no number of milliseconds"),
        (
            "mlxcel",
            MLXCEL.replace("6.343", "4.0"),
            "cost.sync_s: width 1 at context 300 is below the pipelined step and no spread explains it "
            "(0.004 s against 0.005174 s)",
        ),
        (
            "llama-batched-bench",
            "| a |",
            "has no rows of llama-batched-bench that decoded anything (a Markdown table or JSON lines)",
        ),
        (
            "llama-batched-bench",
            "\n".join(BENCH.splitlines()[:-1]),
            "has no B above 1 with a row for every PP and TG, nor is each of them behind B 1",
        ),
        (
            "llama-batched-bench",
            f"main: n_kv_max = 4096, is_pp_shared = 0, is_tg_separate = 1, n_gpu_layers = 99\n{BENCH}",
            "was measured with -tgs, one sequence after the other, and has no cost of a wider forward",
        ),
        *(
            (
                "llama-batched-bench",
                f'{{"pp": {pp}, "tg": 1, "pl": 1, "t_pp": 1, "t_tg": {t_tg}}}',
                "a row cannot be read",
            )
            for pp, t_tg in (("NaN", 1), ("1e999", 1), ("1", "NaN"), ("1", "0"), ("-1", "1"), ("1", "1" + "0" * 400))
        ),
        ("llama-batched-bench", BENCH.splitlines()[-1], "has no row of B 1, which is a plain step"),
        ("json", "{", "not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("json", "[]", "must be a JSON object with the keys of a profile"),
        ("json", '{"format": null}', "is empty"),
        ("json", '{"notes": [{}]}', "holds a value that no profile has"),
        ("json", '{"notes": [{"a": 1}, "b"]}', "holds a value that no profile has"),
        ("json", '{"notes": [null]}', "holds a value that no profile has"),
        ("json", "[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, source: str, text: str, words: str) -> None:
    result = imported(tmp_path, source, text)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"{tmp_path}/printed: {words}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ("--import", "x", "--from", "json", "--host-work", "2ms"),
            2,
            "--host-work is for measuring only",
        ),
        (("--import", "", "--from", "json"), 1, "cannot be read"),
        (("--import", "x"), 2, "--import FILE and --from mlxcel|llama-batched-bench|json need each other"),
        (("--widths", "one"), 2, "'one' is no list of numbers; write 1..10 or 16,256,1024"),
        (("--host-work", "20"), 2, "'20' is no time; write 20ms or 0.02s"),
        (("--widths", "2,3"), 1, "--widths: must start at 1 and end at 65 at most (got (2, 3))"),
        (("--model", "nowhere"), 1, "no model named 'nowhere', nor such a directory (named: smollm2)"),
        (("-o", "/tmp"), 1, "/tmp: cannot be written (it is a directory)"),
        (("-o", ".", "--name", "m"), 1, "'.': cannot be written (it is a directory)"),
        (("-o", "/", "--name", "m"), 1, "'/': cannot be written (it is a directory)"),
        (("--chip", "M4"), 2, "--chip is for --import only"),
        (("--widths", "3..1"), 2, "'3..1' is no list of numbers; write 1..10 or 16,256,1024"),
        (("--widths", "1.."), 2, "'1..' is no list of numbers; write 1..10 or 16,256,1024"),
        (("--widths", "1..99999999999"), 2, "'1..99999999999' holds more numbers than there are contexts (1048576)"),
        (("-o", "/dev/null", "--force", "--name", "m"), 1, "/dev/null: is no regular file"),
        (("-o", "nowhere/p.yaml"), 1, "nowhere/p.yaml: cannot be written (no directory 'nowhere')"),
        (("-o", "my machine.yaml"), 1, "name: must be a plain word of letters, digits, '.', '_' and '-'"),
        (("--name", "M4 Pro"), 1, "name: must be a plain word of letters, digits, '.', '_' and '-' (got 'M4 Pro')"),
        (("--dtype", "4bit"), 2, "'4bit' is not one of q4, bfloat16, float32"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run("--model", "m", "-o", tmp_path / "p.yaml", *arguments)

    assert result.exit_code == code
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["p.yaml", "p.samples.json"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")

    result = run("--model", "m", "-o", tmp_path / "p.yaml")

    assert (result.exit_code, result.stderr) == (1, f"{tmp_path}/{name}: is there already; --force overwrites it\n")


def test_words_that_no_profile_says_are_refused_before_any_time_is_spent(tmp_path: Path) -> None:
    class Unused(ScriptedEngine):
        """One that must not be measured."""

        def check_rollback(self, positions: int) -> None:
            """Fail."""
            raise AssertionError

    plan, costs = Plan((1, 2), (16,), 2), Costs("m", range(1, 100), {1: 0.01, 2: 0.02})
    for name, source in (("p", "calibrate \ud800"), ("\ud800", "a test")):
        with pytest.raises(ProfileError, match=r": must be one line of printable text \(got "):
            calibrated(Unused({}, costs), plan, Output(tmp_path / f"{name}.yaml", False, "p"), source)


def test_wide_spaces_are_words_too(tmp_path: Path) -> None:
    costs = Costs("m", range(1, 100), {1: 0.01, 2: 0.02}, prefill=Prefill(per_token_s=0.001))
    plan, output = Plan((1, 2), (16,), 2), Output(tmp_path / "p.yaml", False, "p")

    calibrated(ScriptedEngine({}, costs), plan, output, "calibrate --model a\u3000b\u00a0c").profile.write(output.path)

    assert calibration.load(str(output.path)).source == "calibrate --model a\u3000b\u00a0c"


def test_samples_that_contradict_each_other_are_kept_and_the_older_ones_too(tmp_path: Path) -> None:
    class Odd(ScriptedEngine):
        """One whose synchronous forwards take no time."""

        def forward(self, tokens: Sequence[int]) -> list[int]:
            """Let no time pass."""
            before_s = self._host_s
            chosen = super().forward(tokens)
            self._host_s = before_s
            return chosen

    output = Output(tmp_path / "p.yaml", True, "p")
    output.path.write_text("older")
    output.samples.write_text("older")
    costs = Costs("m", range(1, 100), {1: 0.01, 2: 0.02})

    with pytest.raises(
        ProfileError,
        match=r"; use more --rounds or a quieter machine \(the samples are kept in .*/p\.samples\.refused\.json\)$",
    ):
        calibrated(Odd({}, costs), Plan((1, 2), (16,), 2), output, "a test")

    assert [path.read_text() for path in (output.path, output.samples)] == ["older", "older"]
    assert len(read(output.refused).of("sync")) == 2
    output.check(output.path, output.samples, output.refused)
    with pytest.raises(ProfileError, match=r"p\.yaml: is there already; --force overwrites it$"):
        Output(output.path, False, "p").check(output.path)
    Output(output.path, False, "p").check(output.refused)  # refused once, it may be tried again


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bring their own")
def test_a_preloaded_library_is_the_one_that_multiplies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "libopenblasp-r0.so"
    (tmp_path / "libopenblas.so.0").symlink_to(real)
    maps = f"7f00-7f01 r-xp 0 00:00 1 {real}\n7f02-7f03 r-xp 0 00:00 1 /venv/libblas-x.so.3\n"
    monkeypatch.setattr(this_machine, "_lines", lambda path: maps.splitlines())

    assert this_machine.blas() == "libblas-x.so.3, libopenblasp-r0.so"
    monkeypatch.setenv("LD_PRELOAD", f"/nowhere.so:{tmp_path}/libopenblas.so.0")
    assert this_machine.blas() == "libopenblasp-r0.so"
    monkeypatch.setenv("LD_PRELOAD", "libopenblas.so.0")
    assert this_machine.blas() == "libopenblasp-r0.so"


def test_a_power_supply_that_goes_away_costs_no_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BAT0", "USB"):
        (tmp_path / name).mkdir()
    (tmp_path / "BAT0" / "status").write_text("Charging\n", encoding="utf-8")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(this_machine, "_supplies", lambda: [tmp_path / name / "status" for name in ("BAT0", "USB")])

    assert this_machine.power().endswith("BAT0 Charging")
