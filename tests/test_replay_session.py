"""A replay session on the scripted engine: what is measured, kept, resumed and held against the prediction."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibration
import policies
from calibration import Costs, ProfileError, this_machine
from calibration.engine import Engine, EngineError
from calibration.scripted_engine import ScriptedEngine
from policies import Policy
from simulator.replay import ReplayError, Session, Setup, measure
from simulator.replay.cli import predict
from simulator.replay.errors import StoppedError
from simulator.replay.execution import Reply
from simulator.replay.matching import mismatches, profile_of
from simulator.replay.measuring import Checks, finished
from simulator.replay.parity import SAME, Comparison
from simulator.replay.report import Answer, answers
from simulator.replay.robust import by_kind, estimate, quotient, totals
from simulator.replay.session import PLAIN, Mode
from simulator.replay.store import Store
from simulator.schedule import read_codes
from simulator.two_clocks import TwoClocks
from traces import Request

COPY = [1, 2, 3, 4, 5, 6, 7, 8, 9]
REQUESTS = (
    Request.of(id="copy", prompt=COPY, reply=COPY * 3, finish="stop"),
    Request.of(id="prose", prompt=[20, 21, 22], reply=[*range(23, 60)], finish="length"),
)
COSTS = Costs(
    "machine",
    range(1, 400),
    {width: 0.010 + 0.002 * (width - 1) for width in range(1, 20)},
    launch_s=0.001,
    read_s=0.002,
    run_ahead_s=0.004,
)


def setup(texts: Sequence[str] = ("gated", "fixed"), *, mode: Mode = "forced", repeats: int = 2) -> Setup:
    chosen: list[Policy] = [policies.load(text) for text in texts]
    return Setup("said", "scripted", "none", REQUESTS, tuple(chosen), COSTS, mode, repeats)


def scripted() -> Engine:
    return ScriptedEngine.of(REQUESTS, COSTS)


def session(found: Setup, directory: Path | None = None, open_engine: Callable[[], Engine] = scripted) -> Session:
    begun = Session(found, Store(directory))
    measure(begun, open_engine, lambda name: None)
    return begun


def never() -> Engine:
    raise AssertionError("nothing was missing")


def answered(begun: Session) -> list[Answer]:
    return answers(begun, TwoClocks(COSTS), {"model": "scripted"})


@pytest.mark.parametrize("mode", ["forced", "free"])
def test_on_the_script_the_prediction_is_met(mode: Mode) -> None:
    found = answered(session(setup(mode=mode)))

    for answer in found:
        assert answer.error == pytest.approx(0, abs=1e-4)
        assert answer.defects(excused=False) == []
        for one in answer.outcomes:
            assert one.same_steps
            assert one.measured.null_speedup.median == pytest.approx(1, abs=1e-4)
            for part in (*one.by_kind, *one.plain_by_kind):
                assert part.measured_s == pytest.approx(part.predicted_s, abs=1e-5)


def test_arms_take_turns_in_every_repeat_in_an_order_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[tuple[str, int]] = []

    class Watched(Reply):
        """A reply that says whose turn it was, and how many tokens it emitted."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.policy = str(args[2])

        def go_on(self, tokens: int) -> None:
            before = len(self.execution.reply)
            super().go_on(tokens)
            turns.append((self.policy, len(self.execution.reply) - before))

    monkeypatch.setattr("simulator.replay.session.Reply", Watched)

    session(setup(repeats=6))

    plain = Counter(emitted for policy, emitted in turns if policy == "plain")
    assert set(plain) == {8, 26 % 8, 36 % 8}  # of 27 and 37 tokens, the first of which the prefill emits
    orders = {tuple(policy for policy, _ in turns[start : start + 4]) for start in range(0, 24, 4)}
    assert len(orders) > 2


def test_a_session_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    count = 0

    def interrupt(name: str) -> None:
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt

    begun = Session(setup(), Store(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        measure(begun, scripted, interrupt)
    left = begun.left
    assert [answer.outcomes[0].run.request.id for answer in answered(begun)] == ["copy", "copy"]
    assert begun.repeats == 1

    resumed = Session(setup(), Store(tmp_path))
    # 2 requests, 2 repeats and 4 arms are 16 runs; of a repeat that was cut, all arms take their turns again.
    assert (left, resumed.left) == (12, 12)
    measure(resumed, scripted, lambda name: None)
    assert resumed.left == 0
    rebuilt = session(setup(), tmp_path, never)
    assert [one.result.records for one in answered(rebuilt)] == [one.result.records for one in answered(resumed)]


def test_more_repeats_can_be_added(tmp_path: Path) -> None:
    session(setup(repeats=1), tmp_path)

    more = Session(setup(repeats=3), Store(tmp_path))

    assert (more.left, more.repeats) == (16, 1)


def test_two_sessions_do_not_write_into_one_directory(tmp_path: Path) -> None:
    begun, other = Session(setup(), Store(tmp_path)), Session(setup(), Store(tmp_path))

    def meanwhile() -> Engine:
        with pytest.raises(ReplayError, match=r"rounds\.jsonl: another replay is writing it$"):
            measure(other, never, lambda name: None)
        return scripted()

    measure(begun, meanwhile, lambda name: None)

    assert Session(setup(), Store(tmp_path)).left == 0
    measure(other, never, lambda name: None)  # the first has measured it all
    assert other.left == 0


def test_a_packed_session_is_read_and_unpacked_to_go_on(tmp_path: Path) -> None:
    session(setup(repeats=1), tmp_path)
    path = tmp_path / "rounds.jsonl"
    (tmp_path / "rounds.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()

    session(setup(repeats=1), tmp_path, never)
    assert not path.exists()
    session(setup(repeats=2), tmp_path)

    assert Session(setup(repeats=2), Store(tmp_path)).left == 0


def test_a_line_that_was_cut_is_measured_again(tmp_path: Path) -> None:
    session(setup(), tmp_path)
    path = tmp_path / "rounds.jsonl"
    path.write_bytes(path.read_bytes()[:-9])

    cut = path.read_bytes()
    resumed = Session(setup(), Store(tmp_path))

    assert resumed.left == 4
    assert path.read_bytes() == cut  # whoever only reads changes nothing
    measure(resumed, scripted, lambda name: None)
    assert Session(setup(), Store(tmp_path)).left == 0


def test_another_setup_is_refused(tmp_path: Path) -> None:
    session(setup(), tmp_path)

    with pytest.raises(ReplayError) as refused:
        Session(setup(mode="free"), Store(tmp_path))
    assert str(refused.value) == f"{tmp_path}/rounds.jsonl: was begun with another mode ('forced', now 'free')"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{}", "KeyError('request')"),
        ('{"request": 1}', "KeyError('repeat')"),
        ('{"request": "copy", "repeat": "x", "arm": "gated"}', """ValueError("invalid literal for int"""),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "zz", "seconds": [1]}',
            """ValueError("no event code 'zz'")""",
        ),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "S S", "seconds": [1]}',
            """ValueError("1 times of 'S S', 1.0 s in all")""",
        ),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "S", "seconds": [0]}',
            """ValueError("1 times of 'S', 0.0 s in all")""",
        ),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "S", "seconds": [1], "reply": [[1], 2]}',
            "TypeError(",
        ),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "S", "seconds": [1], "reply": [1]}',
            """ValueError("1 tokens of 'S'")""",
        ),
        (
            '{"request": "copy", "policy": "gated", "compared_sha256": "", "parity": {"verdict": "differs", '
            '"position": 1, "tokens": [1], "gaps": [1, 2], "largest_difference": 1}, "recording": {"verdict": "same"}}',
            "ValueError(",
        ),
        (
            '{"request": "copy", "policy": "gated", "compared_sha256": "", "parity": {"verdict": "fine"}, '
            '"recording": {"verdict": "same"}}',
            "ValueError(",
        ),
        ('{"request": "copy", "repeat": 1e999, "arm": "gated"}', "OverflowError("),
        (
            '{"request": "copy", "repeat": 0, "arm": "gated", "codes": "S", "seconds": [NaN]}',
            "ValueError('a time of nan')",
        ),
        ('{"request": "copy", "prefill_s": -1}', "ValueError('a time of -1')"),
    ],
)
def test_a_line_that_no_replay_wrote_is_refused(tmp_path: Path, line: str, why: str) -> None:
    session(setup(), tmp_path)
    path = tmp_path / "rounds.jsonl"
    head = path.read_text(encoding="utf-8").splitlines()[0]
    path.write_text(f"{head}\n{line}\n", encoding="utf-8")

    with pytest.raises(ReplayError) as refused:
        Store(tmp_path).begin(setup().document())
    assert str(refused.value).startswith(f"{path}:2: is no line of a replay ({why}")


def test_a_line_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    session(setup(), tmp_path)
    with (tmp_path / "rounds.jsonl").open("a", encoding="utf-8") as file:
        file.write("[" * 100_000 + "\n")

    with pytest.raises(ReplayError, match=r"rounds\.jsonl:\d+: not JSON \("):
        Session(setup(), Store(tmp_path))


def test_a_file_that_is_none_of_a_replay_is_left_alone(tmp_path: Path) -> None:
    content = "my precious notes"
    (tmp_path / "rounds.jsonl").write_text(content, encoding="utf-8")

    with pytest.raises(ReplayError, match=r"rounds\.jsonl: is no file of a replay \(it begins "):
        session(setup(), tmp_path, never)
    assert (tmp_path / "rounds.jsonl").read_text(encoding="utf-8") == content


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "rounds.jsonl").symlink_to("/dev/full")

    with pytest.raises(ReplayError, match=r"rounds\.jsonl: is no regular file$"):
        session(setup(), tmp_path, never)


@pytest.mark.parametrize(
    ("lost", "words"), [("prefill_s", "has no prefill of request 'copy'"), ('"engine"', "has no line of the engine")]
)
def test_runs_without_what_belongs_to_them_are_refused(tmp_path: Path, lost: str, words: str) -> None:
    session(setup(), tmp_path)
    path = tmp_path / "rounds.jsonl"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if lost not in line]
    path.write_text("".join(kept), encoding="utf-8")

    with pytest.raises(ReplayError) as refused:
        Session(setup(), Store(tmp_path))
    assert str(refused.value) == f"{path}: {words}"


def test_the_same_words_that_end_otherwise_are_another_setup(tmp_path: Path) -> None:
    session(setup(), tmp_path)
    asked = replace(setup(), requests=(REQUESTS[0], replace(REQUESTS[1], finish="stop")))

    with pytest.raises(ReplayError, match="was begun with another ends_sha256"):
        Session(asked, Store(tmp_path))


def test_a_reply_that_ends_at_once_holds_up_no_other(tmp_path: Path) -> None:
    def silent() -> Engine:
        return ScriptedEngine({tuple(REQUESTS[1].prompt.tolist()): REQUESTS[1].reply.tolist()}, COSTS, end=60)

    for _ in range(2):
        begun = Session(setup(mode="free"), Store(tmp_path))
        with pytest.raises(StoppedError, match=r"^request 'copy': the model ends its reply before the first token$"):
            measure(begun, silent, lambda name: None)
        assert [one.run.request.id for one in answered(begun)[0].outcomes] == ["prose"]


def test_what_only_lacks_comparisons_is_reported_without_the_engine(tmp_path: Path) -> None:
    session(setup(mode="free"), tmp_path)
    path = tmp_path / "rounds.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    begun = Session(setup(mode="free"), Store(tmp_path))

    class Missing(Checks):
        """Where no engine is installed."""

        def open(self) -> Engine:
            """Say so."""
            raise EngineError("mlx is not installed")

    checks = Missing([], begun.setup, calibration.shipped("epyc-smollm2-135m-q4"), True)

    assert finished(begun, checks) == "mlx is not installed"
    with pytest.raises(EngineError):
        finished(Session(setup(mode="free", repeats=3), Store(tmp_path)), checks)


def test_nothing_is_held_against_a_free_reply_that_nobody_compared(tmp_path: Path) -> None:
    def other() -> Engine:
        script = {tuple(one.prompt.tolist()): [*one.reply.tolist()[:5], 60, 61] for one in REQUESTS}
        return ScriptedEngine(script, COSTS, end=99)

    session(setup(("gated",), mode="free"), tmp_path, other)
    path = tmp_path / "rounds.jsonl"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if '"parity"' not in line]
    path.write_text("".join(kept), encoding="utf-8")

    (answer,) = answered(Session(setup(("gated",), mode="free"), Store(tmp_path)))

    assert answer.defects(excused=False) == []


@pytest.mark.parametrize("kept", ["", ', "setup": 3'])
def test_a_file_without_a_setup_is_refused(tmp_path: Path, kept: str) -> None:
    (tmp_path / "rounds.jsonl").write_text(f'{{"format": "breakeven-replay/1"{kept}}}\n', encoding="utf-8")

    with pytest.raises(ReplayError) as refused:
        Session(setup(), Store(tmp_path))
    assert str(refused.value) == f"{tmp_path}/rounds.jsonl:1: setup must be an object (got {3 if kept else None})"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(ReplayError) as refused:
        session(setup(), tmp_path / "taken", never)
    assert str(refused.value) == f"{tmp_path}/taken/rounds.jsonl: cannot be written (File exists)"


def test_what_could_not_be_begun_leaves_nothing_that_another_setup_stumbles_over(tmp_path: Path) -> None:
    def refusing() -> Engine:
        raise EngineError("no such model")

    with pytest.raises(EngineError):
        session(setup(), tmp_path, refusing)

    assert (tmp_path / "rounds.jsonl").read_bytes() == b""
    assert session(setup(mode="free"), tmp_path).left == 0


def test_rounds_of_another_library_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(this_machine, "blas", lambda: "libblas")
    session(setup(), tmp_path)
    monkeypatch.setattr(this_machine, "blas", lambda: "libopenblas")

    with pytest.raises(ReplayError, match=r"was begun on another engine \(blas 'libblas', now 'libopenblas'\)$"):
        session(setup(repeats=3), tmp_path)


def test_figures_that_a_policy_decides_by_are_part_of_the_setup(tmp_path: Path) -> None:
    cheaper = replace(COSTS, device=dict.fromkeys(COSTS.device, 0.01))
    for name, texts in (("gated", ("gated",)), ("breakeven", ("breakeven",))):
        session(setup(texts), tmp_path / name)

    Session(replace(setup(("gated",)), costs=cheaper), Store(tmp_path / "gated"))
    with pytest.raises(ReplayError, match="was begun with another prices_sha256"):
        Session(replace(setup(("breakeven",)), costs=cheaper), Store(tmp_path / "breakeven"))


@pytest.mark.parametrize("place", [1, 15, -3], ids=["the head", "the data", "the checksum"])
def test_a_packed_session_that_is_broken_is_refused(tmp_path: Path, place: int) -> None:
    packed = bytearray(gzip.compress(b'{"format": "breakeven-replay/1"}' * 9))
    packed[place] ^= 255
    for content in (bytes(packed), bytes(packed[:20])):
        (tmp_path / "rounds.jsonl.gz").write_bytes(content)
        with pytest.raises(ReplayError, match="cannot be read"):
            Session(setup(), Store(tmp_path))


def test_two_that_unpack_at_once_get_one_file(tmp_path: Path) -> None:
    session(setup(repeats=1), tmp_path)
    path = tmp_path / "rounds.jsonl"
    (tmp_path / "rounds.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.write_text("the other's")

    Store(tmp_path)._unpack(path)

    assert path.read_text() == "the other's"
    assert {file.name for file in tmp_path.iterdir()} == {"rounds.jsonl", "rounds.jsonl.gz"}


def test_a_name_with_a_line_separator_survives(tmp_path: Path) -> None:
    odd = Request.of(id="one\u2028two", prompt=COPY, reply=COPY * 2, finish="stop")
    found = replace(setup(), requests=(odd,))
    Session(found, Store(tmp_path))
    measure(Session(found, Store(tmp_path)), lambda: ScriptedEngine.of([odd], COSTS), lambda name: None)

    assert Session(found, Store(tmp_path)).left == 0


def test_replies_that_nobody_compared_yet_are_compared_when_the_session_goes_on(tmp_path: Path) -> None:
    session(setup(mode="free"), tmp_path)
    path = tmp_path / "rounds.jsonl"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if '"parity"' not in line]
    path.write_text("".join(kept), encoding="utf-8")

    resumed = Session(setup(mode="free", repeats=1), Store(tmp_path))
    assert (resumed.left, len(resumed.unfinished)) == (0, 2)
    assert {one.comparison for answer in answered(resumed) for one in answer.outcomes} == {None}
    measure(resumed, scripted, lambda name: None)

    assert {one.comparison for answer in answered(resumed) for one in answer.outcomes} == {Comparison(SAME, SAME)}
    session(setup(mode="free", repeats=1), tmp_path, never)


class Fickle(ScriptedEngine):
    """One that says something else at one place, every so many times that it is asked."""

    def __init__(self, every: int) -> None:
        script = {tuple(one.prompt.tolist()): one.reply.tolist() for one in REQUESTS}
        super().__init__(script, COSTS, end=9999)
        self._every, self._asked = every, 0

    def _said(self, position: int) -> int:
        if position != 16:
            return super()._said(position)
        self._asked += 1
        return 100 + self._asked if self._asked % self._every == 0 else super()._said(position)


def test_an_engine_that_does_not_repeat_itself_is_reported_with_what_it_said() -> None:
    begun = session(setup(("fixed",), mode="free", repeats=6), None, lambda: Fickle(7))

    (answer,) = answered(begun)

    # Of six repeats with three arms each, every seventh reply is another one: two of each request.
    assert [one.unlike for one in answer.outcomes] == [2, 2]
    assert begun.notes == [
        f"request {name!r}: 2 of 6 repeats do not count, because the engine did not repeat itself"
        for name in ("copy", "prose")
    ]
    (line, *_) = answer.defects(excused=True)
    assert re.match(r"request 'copy': plain decoding does not repeat itself: differs at token 7: 8 there, 1\d\d", line)


def test_comparisons_that_were_cut_off_are_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Store.judged

    def cut(store: Store, request: str, arm: str, *args: Any) -> None:
        if arm == PLAIN:
            raise KeyboardInterrupt
        keep(store, request, arm, *args)

    asked = setup(("fixed",), mode="free", repeats=6)
    monkeypatch.setattr(Store, "judged", cut)
    with pytest.raises(KeyboardInterrupt):
        session(asked, tmp_path, lambda: Fickle(7))
    monkeypatch.undo()

    resumed = session(asked, tmp_path, lambda: Fickle(100))
    (answer,) = answered(resumed)

    assert resumed.comparison(REQUESTS[0], PLAIN) is not None
    assert "plain decoding does not repeat itself" in answer.defects(excused=True)[0]


def test_what_is_said_later_is_compared_again(tmp_path: Path) -> None:
    begun = session(setup(("fixed",), mode="free", repeats=1), tmp_path, lambda: Fickle(100))
    assert begun.comparison(REQUESTS[0], "fixed") == Comparison(SAME, SAME)

    more = session(setup(("fixed",), mode="free", repeats=2), tmp_path, lambda: Fickle(3))

    compared = more.comparison(REQUESTS[0], "fixed"), more.comparison(REQUESTS[0], PLAIN)
    assert "differs" in {one.parity.verdict for one in compared if one}


def test_replies_that_became_different_are_compared_token_for_token() -> None:
    # A wide forward is sure that the copied reply ends where it goes on with 4, at position 12.
    def shorter() -> Engine:
        script = {tuple(one.prompt.tolist()): one.reply.tolist() for one in REQUESTS}
        return ScriptedEngine(script, COSTS, end=99, wide={12: {99: 9.0}})

    begun = session(setup(("fixed",), mode="free"), None, shorter)
    (one, _) = answered(begun)[0].outcomes

    plain, own = (len(begun.line(REQUESTS[0], arm).reply) - 1 for arm in (PLAIN, "fixed"))
    assert (plain, own) == (26, 2)
    times = {arm: begun.times(REQUESTS[0], arm).sum(axis=1).mean() for arm in (PLAIN, "fixed")}
    assert one.measured.decode_speedup.median == pytest.approx(times[PLAIN] / plain / (times["fixed"] / own))
    assert one.predicted_speedup.median == pytest.approx(one.measured.decode_speedup.median, rel=1e-3)
    assert one.measured.decode_s.median == pytest.approx(times["fixed"])


def test_of_unequal_repeats_all_requests_together_are_those_that_all_have() -> None:
    count = 0

    def interrupt(name: str) -> None:
        nonlocal count
        count += 1
        if count == 4 * 3 + 4:  # three repeats of the first request, and one of the second
            raise KeyboardInterrupt

    begun = Session(setup(repeats=3), Store())
    with pytest.raises(KeyboardInterrupt):
        measure(begun, scripted, interrupt)

    for answer in answered(begun):
        assert [one.measured.repeats for one in answer.outcomes] == [3, 1]
        assert answer.together.repeats == 1
        assert answer.together.decode_speedup.median == pytest.approx(answer.predicted_speedup, abs=1e-4)


def test_a_free_reply_goes_on_no_further_than_there_are_costs() -> None:
    short = Request.of(id="short", prompt=COPY, reply=COPY * 2, finish="stop")
    endless = {tuple(COPY): COPY * 20}
    costs = replace(COSTS, contexts=range(1, 39))
    found = replace(setup(("gated",), mode="free", repeats=1), requests=(short,), costs=costs)

    begun = session(found, None, lambda: ScriptedEngine(endless, costs, end=99))

    (answer,) = answers(begun, TwoClocks(costs), {"model": "scripted"})
    (one,) = answer.outcomes
    assert (
        len(begun.line(short, "gated").reply) == 18 + 3
    )  # 9 of the prompt, 18 recorded and a verify of 8 leave 3 of 38
    assert one.comparison is not None
    assert str(one.comparison.recording) == "differs at token 18: the end there, 1 here; logit gaps 1 and 1, " + (
        "paths differ by up to 0"
    )


@pytest.mark.parametrize(("checkpoint", "refused"), [("smollm2", 0), ("other/model", 1)])
def test_a_named_checkpoint_is_the_same_though_its_converted_file_is_not(checkpoint: str, refused: int) -> None:
    profile = calibration.shipped("epyc-smollm2-135m-bfloat16")
    said = {"model": profile.model, "checkpoint": checkpoint, "dtype": "bfloat16"}

    found = mismatches({**said, "weights_sha256": "a"}, {**said, "weights_sha256": "b"}, profile)

    wanted = [
        f"the {one} is of other weights than the engine's, of the same name and dtype" for one in ("trace", "profile")
    ]
    assert [line for line in found if "weights" in line] == wanted * refused


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "rounds.jsonl").symlink_to("/dev/full")

    with pytest.raises(ReplayError) as refused:
        Store(tmp_path)._append({})
    assert str(refused.value) == f"{tmp_path}/rounds.jsonl: cannot be written (No space left on device)"


def test_a_reply_that_differs_is_a_defect() -> None:
    # Position 12 is the fourth token of the copied reply, 4; a wide forward is sure of 50 there.
    def differing() -> Engine:
        script = {tuple(one.prompt.tolist()): one.reply.tolist() for one in REQUESTS}
        return ScriptedEngine(script, COSTS, end=99, wide={12: {50: 9.0, 51: 8.0}})

    found = answered(session(setup(("fixed",), mode="free"), None, differing))

    assert [line for answer in found for line in answer.defects(excused=True)] == [
        "fixed, request 'copy': the reply is not plain decoding's: differs at token 3: 4 there, 50 here; "
        "logit gaps 1 and 1, paths differ by up to 9"
    ]


def test_a_reply_that_is_not_the_recorded_one_is_a_defect_unless_it_was_recorded_otherwise() -> None:
    def other() -> Engine:
        script = {tuple(one.prompt.tolist()): [*one.reply.tolist()[:5], 60, 61] for one in REQUESTS}
        return ScriptedEngine(script, COSTS, end=99)

    found = answered(session(setup(("gated",), mode="free"), None, other))

    assert [answer.defects(excused=True) for answer in found] == [[]]
    assert [answer.defects(excused=False) for answer in found] == [
        [
            f"gated, request {name!r}: the reply is not the recorded one: differs at token 5: {said} there, 60 here; "
            "logit gaps 1 and 1, paths differ by up to 0"
            for name, said in (("copy", 6), ("prose", 28))
        ]
    ]


def test_a_near_tie_with_the_recording_is_no_defect() -> None:
    # Where the recording goes on with 5, single forwards see 5 and 6 all but alike, and wide ones a little otherwise.
    said = Request.of(id="tie", prompt=COPY, reply=[1, 2, 3, 4, 5, 60], finish="length")

    def other() -> Engine:
        near = {4 + len(COPY): {5: 1.0, 6: 1.01}}
        return ScriptedEngine({tuple(COPY): [*range(1, 5), 6, 60]}, COSTS, end=99, narrow=near, wide={13: {5: 0.99}})

    found = replace(setup(("fixed",), mode="free"), requests=(said,))
    ((one,),) = [answer.outcomes for answer in answered(session(found, None, other))]

    assert one.comparison is not None
    assert (one.comparison.parity.verdict, one.comparison.recording.verdict) == ("same", "near-tie")


def test_a_width_that_only_a_free_reply_may_need_is_refused_before_anything_runs() -> None:
    narrow = replace(COSTS, device={1: 0.01})
    prose = (REQUESTS[1],)

    predict(replace(setup(("fixed",)), requests=prose, costs=narrow))
    with pytest.raises(ProfileError, match="width 2 is not in profile machine"):
        predict(replace(setup(("fixed",), mode="free"), requests=prose, costs=narrow))


def test_disturbed_steps_do_not_move_a_robust_sum() -> None:
    quiet = np.full((5, 10), 0.01)
    disturbed = quiet.copy()
    for repeat, step in enumerate([1, 3, 5, 7, 9]):
        disturbed[repeat, step] = 1.0

    sums = totals({"plain": quiet, "policy": disturbed})

    assert estimate(sums["policy"]).median == pytest.approx(0.1)
    assert estimate(quotient(sums["plain"], sums["policy"])).median == pytest.approx(1)


def test_time_is_booked_by_kind() -> None:
    events = read_codes("S B P D V3:2 S B P R")

    assert by_kind(events, [1, 2, 4, 8, 16, 32, 64, 128, 256]) == {
        "pipelined": (2, 132),
        "synchronous": (2, 33),
        "verify 3": (1, 16),
        "drains": (4, 330),
    }


def test_the_shipped_profile_of_this_machine_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for chip in ("GB10", "M4 Pro"):
        of = [one for one in map(calibration.shipped, calibration.names()) if chip in one.machine.chip]
        monkeypatch.setattr(this_machine, "machine", lambda of=of: of[0].machine)

        assert profile_of("Qwen3-1.7B", "q4").machine.chip == of[0].machine.chip


def test_a_file_does_not_stand_in_for_a_shipped_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in calibration.names():
        Path(name).write_text("no profile", encoding="utf-8")

    assert profile_of("SmolLM2-135M-Instruct", "q4").name == "epyc-smollm2-135m-q4"
