"""A progress bar on standard error, shown only to a person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Named(Protocol):
    """Something to wait for, with a name to show meanwhile."""

    @property
    def id(self) -> str:
        """The name."""


Item = TypeVar("Item", bound=Named)


def shown(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, showing which one is being worked on and how many are done, if anybody can see it."""
    if not _seen():
        yield from items
        return
    # Only here: whoever needs no bar need not wait for rich.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(items))
        for item in items:
            bar.update(task, description=item.id)
            yield item
            bar.advance(task)


@contextmanager
def counted(total: int, title: str) -> Iterator[Callable[[str], None]]:
    """Show how many of `total` steps are done and how much time is left; call what is yielded after each.

    Args:
        total: steps that there will be.
        title: what is said before anything is done; each call says what was.
    """
    if not total or not _seen():
        yield lambda name: None
        return
    # Only here: whoever needs no bar need not wait for rich.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False))
    with Progress(*columns, *left, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda name: bar.update(task, description=name, advance=1)


def _seen() -> bool:
    """Return whether a person can see standard error, which may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()
