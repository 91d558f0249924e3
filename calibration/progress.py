"""A progress bar on standard error, shown only to a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """Something to wait for, with a name to show meanwhile."""

    @property
    def id(self) -> str:
        """The name."""


Item = TypeVar("Item", bound=Named)


def shown(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, showing which one is being worked on and how many are done, if anybody can see it."""
    if not sys.stderr.isatty():
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
