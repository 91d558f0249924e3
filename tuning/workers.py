"""Several workers on one study: a process each, since a trial is pure computation.

They end with their work, with Ctrl-C, and when whoever started them is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait

from calibration import ProfileError
from simulator.errors import SimulationError
from tuning.errors import TuningError
from tuning.worker import Work, work

Done = Callable[[str], None]


def work_together(task: Work, workers: int, done: Done) -> None:
    """Work on a study with several processes; with one, in this process.

    Args:
        task: what each of them does.
        workers: how many.
        done: called after each trial with what it reached.

    Raises:
        TuningError: as `work`, in any of them.
        ProfileError: as `work`.
    """
    if workers == 1:
        work(task, done)
        return
    # Not forked: a copy of a process that has threads or an open database is none that works.
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for _ in range(workers):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(task, theirs))
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        _listen(pipes, done)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _listen(pipes: list[Connection], done: Done) -> None:
    """Take in what workers say until all have ended, or one could not go on."""
    said_end = 0
    open_pipes = list(pipes)
    while open_pipes:
        for pipe in wait(open_pipes):
            assert isinstance(pipe, Connection)
            try:
                kind, words = pipe.recv()
            except EOFError:
                open_pipes.remove(pipe)
                continue
            if kind == "failed":
                raise TuningError(words)
            if kind == "ended":
                said_end += 1
            else:
                done(words)
    if not said_end:
        raise TuningError("every worker was killed; finished trials are kept, the same command goes on")


def _work(task: Work, pipe: Connection) -> None:
    """Work in a process of its own."""
    # Ctrl-C reaches the parent too, which ends us: at once, as a kill does, since whoever cleans up may meet a lock
    # that it holds itself. The lease of the running trial sees to the rest.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(task, lambda words: pipe.send(("done", words)))
        pipe.send(("ended", ""))
    except (TuningError, ProfileError, SimulationError) as error:
        pipe.send(("failed", str(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
