"""Workers that are killed at random: nothing finished is lost, nothing is there twice, nothing runs for ever."""

from __future__ import annotations

import dataclasses
import multiprocessing
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from tests.tuning_requests import requests, task, write
from tuning.errors import TuningError
from tuning.search import search
from tuning.storage import opened
from tuning.study import Place, settled
from tuning.worker import Work, joined, work

LEASE_S = 1.0
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tuning.worker"])


def started(asked: Work) -> BaseProcess:
    process = CONTEXT.Process(target=work, args=(dataclasses.replace(asked, trials=None),))
    process.start()
    return process


def finished(asked: Work) -> dict[int, tuple[Any, ...]]:
    with opened(asked.place.storage) as storage:
        trials = settled(joined(asked, storage))
    return {one.number: (one.params, one.values, one.user_attrs, one.constraints) for one in trials}


def survive(asked: Work, kills: int, *, longest_s: float) -> None:
    """Kill the older of two workers again and again, and hold the study to what it had."""
    draw = random.Random(0)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known = finished(asked)
    workers = [started(asked), started(asked)]
    try:
        for _ in range(kills):
            while len(finished(asked)) == len(known):
                time.sleep(0.02)
            time.sleep(draw.uniform(0.0, longest_s))
            workers[0].kill()
            workers[0].join()
            now = finished(asked)
            assert {number: now.get(number) for number in known} == known
            known = now
            workers = [*workers[1:], started(asked)]
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    time.sleep(LEASE_S + 0.1)

    found = search(dataclasses.replace(asked, trials=len(finished(asked)) + 2), 1)

    now = finished(asked)
    assert {number: now[number] for number in known} == known
    assert len(found.trials) == len(now)
    with opened(asked.place.storage) as storage:
        states = [one.state for one in joined(asked, storage).trials]
    assert states.count(TrialState.RUNNING) == 0
    assert states.count(TrialState.FAIL) == len(states) - len(now) <= kills + 2


def test_workers_killed_twenty_times_lose_at_most_their_running_trials(tmp_path: Path) -> None:
    survive(dataclasses.replace(task(tmp_path), sampler="random", lease_s=LEASE_S), kills=20, longest_s=0.25)


def test_a_sqlite_file_is_shared_by_workers_that_are_killed(tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path), place=Place(str(tmp_path / "tune.db"), "killed"), lease_s=LEASE_S)

    survive(dataclasses.replace(asked, sampler="random"), kills=4, longest_s=0.5)


def test_workers_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    trace = write(tmp_path / "said.jsonl", requests(2), requests(1, held_out=True))
    command = [str(Path(sys.executable).with_name("tune")), "--policy", "gated", "--trace", trace, "--timeout", "100"]
    parent = subprocess.Popen([*command, "--workers", "2"], cwd=tmp_path)
    journal = tmp_path / "tune.journal"
    while not journal.exists() or journal.stat().st_size < 20_000:
        assert parent.poll() is None
        time.sleep(0.05)

    parent.kill()
    parent.wait()
    time.sleep(1.0)

    size = journal.stat().st_size
    time.sleep(0.5)
    assert journal.stat().st_size == size


@dataclass(frozen=True)
class Server:
    """A PostgreSQL of our own, on loopback, under an ordinary user."""

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://tuner@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        user = "nobody" if self.folder.owner() == "nobody" else None
        with (self.folder / "log").open("ab") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, user=user, cwd=self.folder)

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    places = [*map(Path, filter(None, [shutil.which("initdb")])), *Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not places:
        pytest.skip("needs PostgreSQL (Debian: postgresql)")
    pytest.importorskip("psycopg", reason="needs psycopg (the extra postgres)")
    folder = Path(tempfile.mkdtemp(prefix="tuning-"))
    (folder / "log").touch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if folder.owner() == "root":  # PostgreSQL refuses to run as root
        for path in (folder, folder / "log"):
            shutil.chown(path, "nobody")
    found = Server(places[0].resolve().parent, folder, port)
    try:
        found.run("initdb", "-D", folder / "data", "-A", "trust", "-U", "tuner", "--no-sync")
        found.start()
        yield found
        found.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.machine
def test_a_database_is_shared_by_workers_that_are_killed(server: Server, tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path), place=Place(server.url, "killed"), lease_s=LEASE_S)

    survive(asked, kills=4, longest_s=1.5)


@pytest.mark.machine
def test_a_database_that_goes_away_is_said_in_one_line_and_the_study_goes_on(server: Server, tmp_path: Path) -> None:
    asked = dataclasses.replace(task(tmp_path, trials=8), place=Place(server.url, "gone"))
    said: list[str] = []

    def cut(words: str) -> None:
        said.append(words)
        if len(said) == 3:
            server.stop()

    with pytest.raises(TuningError) as refused:
        work(asked, cut)
    with pytest.raises(TuningError):
        search(asked, 1)
    server.start()

    assert str(refused.value).startswith(f"postgresql://***@127.0.0.1:{server.port}/postgres: does not answer (")
    assert str(refused.value).endswith("; finished trials are kept, the same command goes on")
    assert "\n" not in str(refused.value)
    assert len(search(asked, 1).trials) == 8
