"""Where studies are kept: a journal file, an SQLite file, or a database that many machines share."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import sqlalchemy
from optuna.storages import BaseStorage, RDBStorage

from calibration.engine import first_line
from tuning.errors import TuningError
from tuning.journal import Journal, Journaled, SpoiltError

SQLITE = (".db", ".sqlite", ".sqlite3")
"""Suffixes of the files that are SQLite databases."""
ATTEMPTS = 20
"""How often to try to make the tables of a database that others are making too."""
PAUSE_S = 0.1
"""How long to wait in between."""
ADDRESS = re.compile("[a-z][a-z0-9+]+:/")
"""How an address begins, also one that was mistyped."""
GONE = "Record does not exist."
"""What Optuna's storages say of a study or trial that they had."""


@contextmanager
def opened(where: str) -> Iterator[BaseStorage]:
    """Open a storage, or make it, and close it in the end.

    Args:
        where: a file, or the URL of a database, as in postgresql://host/name.

    Raises:
        TuningError: it cannot be opened, or does not answer while it is used.
    """
    with reachable(where):
        storage = _open(where)
        try:
            yield storage
        finally:
            if isinstance(storage, RDBStorage):
                storage.remove_session()
                storage.engine.dispose()


def shown(where: str) -> str:
    """Return what a storage is called, without the name and password that may be in it, however they are written.

    >>> shown("postgresql://ann:secret@host/db"), shown("postgresql://host/db?password=secret"), shown("tune.journal")
    ('postgresql://***@host/db', 'postgresql://host/db?password=***', 'tune.journal')
    """
    if not ADDRESS.match(where):
        return where
    return re.sub("(password=)[^&]*", r"\1***", re.sub(":/+.*@", "://***@", where))


@contextmanager
def reachable(where: str) -> Iterator[None]:
    """Turn what a storage raises when it is gone, full or none into one line.

    Raises:
        TuningError: it did.
    """
    try:
        yield
    except OSError as error:
        words = f"cannot be used ({error.strerror or error})"
        raise TuningError(f"{shown(where)}: {words}; finished trials are kept, the same command goes on") from error
    except ImportError as error:
        raise TuningError(
            f"{shown(where)}: its driver is not installed; for PostgreSQL install the extra 'postgres'"
        ) from error
    except sqlalchemy.exc.ArgumentError as error:
        raise TuningError(f"{shown(where)}: is no address of a database ({first_line(error)})") from error
    except SpoiltError as error:
        raise TuningError(f"{where}: is no journal of studies ({error}); give another --storage") from error
    except KeyError as error:
        if error.args != (GONE,):
            raise
        raise TuningError(f"{shown(where)}: the study was deleted; the same command starts it again") from error
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = error.__cause__ or error
        raise TuningError(
            f"{shown(where)}: does not answer ({first_line(cause)}); finished trials are kept, the same command goes on"
        ) from error


def _open(where: str) -> BaseStorage:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if "://" not in where:
            _check_file(where)
        if "://" not in where and not where.endswith(SQLITE):
            return Journaled(Journal(where))
        try:
            return _database(_url(where))
        except (ValueError, KeyError, IndexError):
            # A port that is no number, or braces in a password, which Optuna takes for a place to fill in.
            raise TuningError(f"{shown(where)}: is no address of a database") from None
        except RuntimeError as error:
            raise TuningError(
                f"{shown(where)}: is no database of studies ({first_line(error)}); give another --storage"
            ) from None


def _database(url: str) -> RDBStorage:
    """Open a database, and make its tables if nobody has.

    Two who find it empty make the same tables at once, and one of them is told that they are there; then they are.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return RDBStorage(url)
        except sqlalchemy.exc.DBAPIError as error:
            if not any(words in str(error.orig).lower() for words in ("already exists", "unique")):
                raise
            threading.Event().wait(PAUSE_S)
    return RDBStorage(url)


def _check_file(where: str) -> None:
    path = Path(where)
    if not where:
        raise TuningError("--storage: must be a file or the URL of a database (got '')")
    if ADDRESS.match(where):
        raise TuningError(f"{shown(where)}: is no address of a database (one slash where two are wanted)")
    if not path.parent.is_dir():
        raise TuningError(f"{where}: cannot be written (no directory {str(path.parent)!r})")
    if path.exists() and not path.is_file():
        # A pipe would keep us waiting for whoever writes into it, and a device holds nothing.
        raise TuningError(f"{where}: is no regular file")


def _url(where: str) -> str:
    if "://" not in where:
        return f"sqlite:///{where}"
    scheme, _, rest = where.partition("://")
    # psycopg 3, whichever driver SQLAlchemy would take by itself.
    return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else where
