"""What `tune` prints and writes, in each of its forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from simulator import settings_file
from traces.files import beside, exists, write_whole
from tuning.answer import Answer
from tuning.document import document
from tuning.errors import TuningError
from tuning.evidence import evidence
from tuning.report import report
from tuning.rust import constants

Form = Literal["text", "json", "mlxcel"]


def printed(answer: Answer, form: Form, day: str, *, named: bool) -> str:
    """Return what is printed.

    Args:
        answer: what came out.
        form: a report, one JSON document, or constants for the reference engine.
        day: the date of the evidence.
        named: whether the user named the profile.
    """
    if form == "json":
        return json.dumps(document(answer, day), indent=2, allow_nan=False)
    if form == "mlxcel":
        shipped = type(answer.policy)().settings
        return constants(answer.inquiry.policy, answer.changes, shipped, evidence(answer, day))
    return report(answer, named=named)


def check(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before there is anything to write.

    Args:
        path: where to write.
        force: whether a file that is there already may be replaced.

    Raises:
        TuningError: it is there already, is no file, or its directory takes none.
    """
    try:
        if not path.parent.is_dir():
            raise TuningError(f"{path}: cannot be written (no directory {str(path.parent)!r})")
        if exists(path):
            if path.is_dir():
                raise TuningError(f"{path}: cannot be written (it is a directory)")
            if not path.is_file():
                # Moving a file over `/dev/null` would replace the device.
                raise TuningError(f"{path}: is no regular file")
            if not force:
                raise TuningError(f"{path}: is there already; --force overwrites it")
        tried = beside(path)
        tried.touch()
        tried.unlink()
    except OSError as error:
        raise TuningError(f"{path}: cannot be written ({error.strerror})") from None


def write(path: Path, answer: Answer, day: str) -> None:
    """Write the settings that were found, with their evidence; an existing file is replaced whole.

    Raises:
        TuningError: it cannot be written.
    """
    text = settings_file.dump(answer.policy, evidence(answer, day))
    try:
        write_whole(path, text)
    except OSError as error:
        raise TuningError(f"{path}: cannot be written ({error.strerror})") from None
