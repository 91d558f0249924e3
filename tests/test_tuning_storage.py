"""Where studies are kept: leases on running trials, a journal that is always whole, and storages that do not answer."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import optuna
import pytest
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from calibration.host_clock import utc_s
from policies import Policy
from tests.tuning_requests import task
from tuning.errors import TuningError
from tuning.evaluation import Speedups
from tuning.journal import Journal
from tuning.lease import ATTRIBUTE, fail_lost
from tuning.search import search
from tuning.storage import opened
from tuning.study import Place
from tuning.worker import joined, one_trial, work


def test_a_running_trial_whose_lease_is_over_is_failed(tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path), lease_s=60.0)
    with opened(asked.place.storage) as storage:
        study = joined(asked, storage)
        lost, alive, unleased = study.ask(), study.ask(), study.ask()
        lost.set_user_attr(ATTRIBUTE, 1.0)
        alive.set_user_attr(ATTRIBUTE, 4e9)

        assert fail_lost(study, 60.0) == 1
        assert [one.state for one in study.trials] == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
        assert fail_lost(study, -1.0) == 1  # the one without a lease began longer ago than that
        assert study.trials[unleased.number].state == TrialState.FAIL


@pytest.mark.parametrize(("age_s", "lost"), [(10, False), (-7200 + 10, False), (19800 + 10, False), (7200 + 450, True)])
def test_a_trial_without_a_lease_may_have_begun_in_another_time_zone(age_s: float, lost: bool) -> None:
    began = datetime.fromtimestamp(utc_s() - age_s)

    class Storage:
        """A study with one trial that is running."""

        def __init__(self) -> None:
            self.failed: list[int] = []

        def get_trials(self, **kwargs: Any) -> list[FrozenTrial]:
            return [FrozenTrial(7, TrialState.RUNNING, None, began, None, {}, {}, {}, {}, {}, 7)]

        def tell(self, number: int, *args: Any, **kwargs: Any) -> None:
            self.failed.append(number)

    found = Storage()

    assert fail_lost(cast(optuna.Study, found), 60.0) == lost
    assert found.failed == [7] * lost


def test_a_trial_that_is_failed_while_it_is_proposed_is_given_up(tmp_path: Path) -> None:
    asked = task(tmp_path)
    evaluator = asked.problem.evaluator(asked.requests)

    class Slow(optuna.Study):
        """One whose sampler takes longer than anybody waits."""

        def ask(self, *args: Any, **kwargs: Any) -> optuna.Trial:
            raise UpdateFinishedTrialError

    with opened(asked.place.storage) as storage:
        joined(asked, storage)

        found = one_trial(
            Slow(asked.place.name, storage), asked, evaluator, asked.problem.judge(asked.requests, evaluator)
        )

    assert found is None


def test_whoever_joins_fails_what_is_lost(tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path), lease_s=60.0)
    with opened(asked.place.storage) as storage:
        joined(asked, storage).ask().set_user_attr(ATTRIBUTE, 1.0)

        assert [one.state for one in joined(asked, storage).trials] == [TrialState.FAIL]


def test_a_trial_that_somebody_else_ends_at_the_same_moment_is_left_to_him(tmp_path: Path) -> None:
    asked = task(tmp_path)

    class Slow(optuna.Study):
        """One that somebody overtakes between its look at a trial and its word on it."""

        def tell(self, *args: Any, **kwargs: Any) -> FrozenTrial:
            raise UpdateFinishedTrialError

    with opened(asked.place.storage) as storage:
        joined(asked, storage).ask().set_user_attr(ATTRIBUTE, 1.0)

        assert fail_lost(Slow(asked.place.name, storage), 60.0) == 1


def test_all_who_open_a_new_database_at_once_find_its_tables(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def studies() -> int:
        together.wait()
        with opened(str(tmp_path / "new.db")) as storage:
            return len(storage.get_all_studies())

    with ThreadPoolExecutor(6) as pool:
        found = [pool.submit(studies) for _ in range(6)]

    assert [one.result() for one in found] == [0] * 6


def test_a_result_that_comes_after_its_lease_is_dropped(tmp_path: Path) -> None:
    asked = task(tmp_path)
    evaluator = asked.problem.evaluator(asked.requests)
    judge = asked.problem.judge(asked.requests, evaluator)

    class Late:
        """Takes so long that somebody else gives its trial up."""

        def speedups(self, policy: Policy) -> Speedups:
            for trial in study.get_trials(states=(TrialState.RUNNING,)):
                study.tell(trial.number, state=TrialState.FAIL)
            return evaluator.speedups(policy)

    with opened(asked.place.storage) as storage:
        study = joined(asked, storage)
        late = one_trial(study, asked, Late(), judge)
        in_time = one_trial(study, asked, evaluator, judge)

        assert late is None
        assert in_time is not None
        assert [one.state for one in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]


def test_a_line_that_was_not_finished_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "tune.journal"
    journal = Journal(str(path))
    journal.append_logs([{"op_code": 0, "n": 1}])
    with path.open("ab") as file:
        file.write(b'{"op_code": 0, "n"')

    Journal(str(path)).append_logs([{"op_code": 0, "n": 2}])

    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == [1, 2]


def test_a_full_disk_is_said_in_one_line_and_the_study_goes_on_when_there_is_room(tmp_path: Path) -> None:
    asked = task(tmp_path, trials=6, lease_s=1.0)
    path = tmp_path / "tune.journal"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(words: str) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 700, before[1]))

    try:
        with pytest.raises(TuningError) as refused:
            work(asked, fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert str(refused.value) == (
        f"{path}: cannot be used (File too large); finished trials are kept, the same command goes on"
    )
    found = search(asked, 1)
    assert len(found.trials) == 6


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\nworld\n")

    words = r"notes.txt: is no journal of studies \(line 1 is no entry\); give another --storage"
    with pytest.raises(TuningError, match=words), opened(str(path)):
        pass
    words = r"^nothing://here: is no address of a database"
    with pytest.raises(TuningError, match=words), opened("nothing://here"):
        pass


@pytest.mark.parametrize(
    ("workers", "line", "flaw"),
    [
        (1, "{not json", "line \\d+ is no entry"),
        (1, "7", "line \\d+ is no entry"),
        (1, '{"op_code": 4}', "line \\d+ is no entry"),
        (1, '{"op_code": 99}', "line \\d+ is no entry"),
        (1, "[" * 5_000, "line \\d+ is no entry"),
        (1, None, "it was cut from \\d+ bytes to 0"),
        (2, "{not json", "line \\d+ is no entry"),
        (2, None, "it was cut from \\d+ bytes to 0"),
    ],
)
def test_a_journal_that_is_spoilt_during_a_search_is_said_in_one_line(
    workers: int, line: str | None, flaw: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tune.journal"

    def spoil(words: str) -> None:
        if line is None:
            path.write_bytes(b"")
        else:
            with path.open("a") as file:
                file.write(line + "\n")

    with pytest.raises(
        TuningError, match=rf"tune.journal: is no journal of studies \({flaw}\); give another --storage$"
    ):
        search(task(tmp_path, trials=10_000), workers, spoil)
    assert capfd.readouterr() == ("", "")


def test_a_study_that_is_deleted_during_a_search_is_said_in_one_line(tmp_path: Path) -> None:
    asked = task(tmp_path)

    def delete(words: str) -> None:
        with opened(asked.place.storage) as storage:
            storage.delete_study(storage.get_study_id_from_name(asked.place.name))

    with pytest.raises(TuningError, match=r"tune.journal: the study was deleted; the same command starts it again$"):
        search(asked, 1, delete)


@pytest.mark.parametrize(
    ("broken", "flaw"),
    [
        ({"params": {}, "distributions": {}}, "it has no parameter 'pipeline_after \\+ 1'"),
        ({"user_attrs": {}}, "it has no score"),
        ({"user_attrs": {"score": {"speedup": 2.0}}}, "it has no score"),
        ({"user_attrs": {"score": 2.0}}, "it has no score"),
        ({"state": TrialState.PRUNED, "values": None}, "it does not say why it was refused"),
    ],
)
def test_a_trial_that_is_none_of_the_search_is_refused(broken: dict[str, Any], flaw: str, tmp_path: Path) -> None:
    asked = task(tmp_path, trials=1)
    work(asked)
    with opened(asked.place.storage) as storage:
        study = joined(asked, storage)
        (whole,) = study.trials
        names = ("state", "values", "params", "distributions", "user_attrs")
        study.add_trial(optuna.create_trial(**{name: getattr(whole, name) for name in names} | broken))

    words = rf"^study study in .*tune.journal: trial 1 is none of this search \({flaw}\); give another --study$"
    with pytest.raises(TuningError, match=words):
        search(asked, 1)


def test_a_value_outside_the_space_is_refused(tmp_path: Path) -> None:
    asked = task(tmp_path, trials=1)
    work(asked)
    journal = tmp_path / "tune.journal"
    before = '"param_name":"narrow","param_value_internal":'
    journal.write_text(journal.read_text().replace(before, before + "99"))

    with pytest.raises(
        TuningError, match=r"trial 0 is none of this search \(narrow is not in 1\.\.64: drawn from 99\d\)"
    ):
        search(asked, 1)


@pytest.mark.parametrize("name", ["pipe", "pipe.db"])
def test_what_is_no_regular_file_is_refused_at_once(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)

    for where in (str(tmp_path / name), "/dev/null", "/dev/zero", str(tmp_path)):
        with pytest.raises(TuningError, match=f"^{where}: is no regular file$"), opened(where):
            pass


def test_optunas_own_tools_read_the_journal(tmp_path: Path) -> None:
    found = search(task(tmp_path, trials=4), 1)

    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "tune.journal"))
    study = optuna.load_study(study_name="study", storage=optuna.storages.JournalStorage(backend))

    assert [one.values for one in study.trials] == [one.values for one in found.trials]


def test_a_study_fits_an_sqlite_file(tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path, trials=3), place=Place(str(tmp_path / "tune.db"), "study"))

    found = search(asked, 1)

    assert [one.number for one in found.trials] == [0, 1, 2]
