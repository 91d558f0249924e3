"""Trials that nobody is working on any more.

A worker that is killed leaves its trial behind as running. So a running trial carries a lease, the time until which
its worker vouches for it, written when it begins and again while it lasts. Whoever joins a study, or asks it for the
next trial, fails those whose lease is over. That needs nothing of the storage but attributes, so it holds for a file
as for a database; the clocks of machines that share a study must agree to within a lease.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from calibration.host_clock import utc_s

ATTRIBUTE = "leased until"
"""The user attribute of a trial, in seconds since 1970."""
LEASE_S = 30.0
"""How long a lease lasts; a killed worker's trial is running for at most so long once somebody else is there."""
QUARTER_S = 900.0
"""What time zones differ by a multiple of."""
RENEWALS = 3
"""How often a lease is renewed before it would be over."""


class Lease:
    """Vouches for a trial while it is worked on."""

    def __init__(self, trial: optuna.Trial, seconds: float = LEASE_S) -> None:
        """Prepare to vouch for a trial, so many seconds at a time."""
        self._trial = trial
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> None:
        self._write()
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        self._trial.set_user_attr(ATTRIBUTE, utc_s() + self._seconds)

    def _renew(self) -> None:
        while not self._over.wait(self._seconds / RENEWALS):
            try:
                self._write()
            except Exception:  # whatever the storage raises: the worker itself is about to meet it too, and says so
                return


def fail_lost(study: optuna.Study, seconds: float = LEASE_S) -> int:
    """Fail the running trials whose lease is over, and return how many there were.

    A worker killed before it could write a lease left the time it began at only, which is that of its own time zone.
    These differ by whole quarters of an hour, and such a trial is believed in while its age does.
    """
    lost = 0
    now_s = utc_s()
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        until_s = trial.user_attrs.get(ATTRIBUTE)
        if not isinstance(until_s, int | float):
            until_s = None  # nor is what is no time
        if until_s is None and trial.datetime_start is not None:
            age_s = now_s - trial.datetime_start.timestamp()
            until_s = now_s + seconds - abs(age_s - QUARTER_S * round(age_s / QUARTER_S))
        if until_s is not None and until_s < now_s:
            tell(study, trial.number, state=TrialState.FAIL)
            lost += 1
    return lost


def tell(
    study: optuna.Study,
    trial: optuna.Trial | int,
    values: float | Sequence[float] | None = None,
    state: TrialState | None = None,
) -> None:
    """Tell a study what became of a trial, unless somebody has done so already, or does at this very moment."""
    with suppress(UpdateFinishedTrialError):
        study.tell(trial, values, state=state, skip_if_finished=True)
