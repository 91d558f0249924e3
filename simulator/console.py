"""What the commands share: one-line errors, exit codes, and a command line that keeps to both."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

Glossary = Sequence[tuple[str, Mapping[str, str]]]


class Command(click.Command):
    """A click command that reports a wrong command line in one line and exits 2."""

    def __init__(self, *args: Any, glossary: Glossary = (), **kwargs: Any) -> None:
        """Take what click takes, and lists of names with their meaning that close the help text."""
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
        super().__init__(*args, **kwargs)
        self._glossary = glossary

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists, wrapped to the width there is."""
        for title, meanings in self._glossary:
            with formatter.section(title):
                formatter.write_dl(list(meanings.items()))

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command as a program."""
        kwargs["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # What the terminal's encoding lacks is shown as an escape instead of ending the command.
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **kwargs)
        except click.UsageError as error:
            self._fail(f"{error.format_message().rstrip('.')}; see {self.name} --help", 2)
        except click.ClickException as error:
            self._fail(error.format_message(), error.exit_code)
        except click.Abort:
            self._fail("interrupted", 1)
        except BrokenPipeError:
            # Whoever read our output has seen enough; nothing is left to flush to.
            sys.stdout = None
            sys.exit(1)
        except OSError as error:
            # A path too long, a folder that may not be entered, a full disk under --help: nobody's bug.
            if error.filename is None:
                sys.stdout = None
            self._fail(f"{error.filename or 'stdout'}: cannot be used ({error.strerror})", 1)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command's function; Ctrl-C ends it in one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.ClickException("interrupted") from None

    def _fail(self, message: str, code: int) -> NoReturn:
        click.echo(one_line(f"{self.name}: {message}" if code == 2 else message), err=True)
        sys.exit(code)


def one_line(text: str) -> str:
    r"""Return a text with its line breaks and control characters written as escapes.

    >>> one_line("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


@contextmanager
def reports(*errors: type[Exception]) -> Iterator[None]:
    """Turn errors that a user can cause into one line on stderr and exit code 1."""
    try:
        yield
    except errors as error:
        raise click.ClickException(str(error)) from error


def print_json(document: Any) -> None:
    """Print one document on stdout, in ASCII: equal input gives equal bytes, whatever the terminal's encoding."""
    print_text(json.dumps(document, indent=2, allow_nan=False))


def print_text(text: str) -> None:
    """Print on stdout and flush, so that a full disk is noticed while it can still be reported."""
    if sys.stdout is None:
        raise click.ClickException("stdout: cannot be written (it is closed)")
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = None
        raise click.ClickException(f"stdout: cannot be written ({error.strerror})") from error


def note(text: str) -> None:
    """Print a line of chatter on stderr."""
    click.echo(text, err=True)
