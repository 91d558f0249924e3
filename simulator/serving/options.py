"""The options of `simulate --serve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import click

from simulator.serving.arrivals import FORMS, arrivals
from simulator.serving.server import Server, Storage
from simulator.serving.service import Service

Option = Callable[[Any], Any]
Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option("--serve", is_flag=True, help="Serve the requests side by side, as a server with slots does."),
    click.option("--parallel", type=int, metavar="N", help="Slots.  [default: 4]"),
    click.option("--max-batch", type=int, metavar="N", help="Rows up to which anybody may propose.  [default: 2]"),
    click.option("--max-batch-prefill", type=int, metavar="N", help="Requests prefilled together.  [default: 1]"),
    click.option(
        "--paged-limit", type=int, metavar="N", help="Context beyond which no paged row proposes.  [default: 4096]"
    ),
    click.option("--max-kv-size", type=int, metavar="N", help="Positions a row may keep; nothing is then pipelined."),
    click.option("--concurrency", type=int, metavar="N", help="Clients that send one request after another."),
    click.option(
        "--arrivals", metavar="PROCESS", help=f"When requests arrive, one of {FORMS}.  [default: now, all at once]"
    ),
    click.option("--queue-limit", type=int, metavar="N", help="Requests that may wait; further ones are refused."),
)
SEED = click.option("--seed", type=int, metavar="N", help="Of random arrivals.  [default: 0]")
KV_STORAGE = "Where rows keep their KV state; auto is dense with one slot, paged with several.  [default: auto]"


def serving_options(command: Command) -> Command:
    """Add the options to a command, which gets them as keyword arguments."""
    return _added(command, SEED, "--storage")


def tuning_options(command: Command) -> Command:
    """Add them to a command with a seed and a storage of its own: `--kv-storage` is the server's, and no seed."""
    return _added(command, None, "--kv-storage")


def _added(command: Command, seed: Option | None, storage: str) -> Command:
    where = click.option(storage, type=click.Choice(get_args(Storage)), help=KV_STORAGE)
    for option in reversed((*OPTIONS[:4], where, *OPTIONS[4:], *([seed] if seed else []))):
        command = option(command)
    return command


def chosen_service(options: Mapping[str, Any], *, pipelined: bool) -> Service | None:
    """Make the service that the options ask for; None without `--serve`.

    Raises:
        SimulationError: a value outside its range.
        click.UsageError: options of a server without `--serve`.
    """
    given = {name: value for name, value in options.items() if value is not None and name != "serve"}
    if not options["serve"]:
        if given:
            raise click.UsageError(f"--{next(iter(given)).replace('_', '-')} needs --serve")
        return None
    if "kv_storage" in given:
        given["storage"] = given.pop("kv_storage")
    return Service(
        clients=given.pop("concurrency", None),
        arrivals=arrivals(given.pop("arrivals", "now")),
        queue_limit=given.pop("queue_limit", None),
        seed=given.pop("seed", 0),
        server=Server(**given, pipelined=pipelined),
    )
