"""What `tune` prints and writes, in each of its forms."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from simulator import settings_file
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
        shipped = answer.inquiry.problem.shipped.settings
        return constants(answer.inquiry.policy, answer.changes, shipped, evidence(answer, day))
    return report(answer, named=named)


def write(path: Path, answer: Answer, day: str) -> None:
    """Write the settings that were found, with their evidence; an existing file is replaced whole.

    Raises:
        TuningError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(settings_file.dump(answer.policy, evidence(answer, day)), encoding="utf-8", newline="\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise TuningError(f"{path}: cannot be written ({error.strerror})") from None
