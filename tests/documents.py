"""The documentation, run: what each command shown in it prints now.

A fenced block tagged `console` holds commands, each on a line that starts with `$ ` (continued after a closing
backslash), each followed by exactly what it prints on standard output; a command with nothing below it prints nothing.
The commands of one page run in order in one empty directory, with `docs` beside them. `console exit=1` says which exit
code the commands of that block end with; theirs is the one case in which standard error is shown too. Blocks with any
other tag are illustrations and are not run.

`python -m tests.documents` rewrites the outputs in place.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
FENCE = re.compile(r"^(?P<open>```console(?: exit=(?P<exit>\d+))?\n)(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """List the Markdown files that show commands, README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def documents() -> list[Path]:
    """List what shows output: the pages, and the `.out` file of every example program (written or not)."""
    programs = sorted((ROOT / "docs" / "examples").glob("*.py"))
    return [*pages(), *(path.with_suffix(".out") for path in programs)]


def rerun(document: Path, directory: Path) -> str:
    """Return what a document would say if it were written now; its commands run in `directory`, which is empty.

    Raises:
        ValueError: A command is not one that documentation may run, or ends with another exit code than stated.
    """
    (directory / "docs").symlink_to(ROOT / "docs")
    if document.suffix == ".out":
        program = document.with_suffix(".py").relative_to(ROOT)
        return run(f"python {shlex.quote(program.as_posix())}", directory)
    return rerun_page(document.read_text("utf-8"), directory)


def rerun_page(text: str, directory: Path) -> str:
    """Return a page with every output as it is now.

    Raises:
        ValueError: As `rerun`, or a block of commands is indented, not closed or badly tagged.
    """
    if len(FENCE.findall(text)) != text.count("```console"):
        raise ValueError("a block of commands starts a line with ```console or ```console exit=N and is closed by ```")

    def block(match: re.Match[str]) -> str:
        exit_code = int(match["exit"] or 0)
        outputs = (shown + run(command, directory, exit_code) for shown, command in commands(match["body"]))
        return match["open"] + "".join(outputs) + "```"

    return FENCE.sub(block, text)


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Find the commands of a block, each as shown (to the end of its line) and as one line to run.

    >>> list(commands("$ simulate --policy plain \\\\\\n    --json\\n{}\\n$ cat a\\n"))
    [('$ simulate --policy plain \\\\\\n    --json\\n', 'simulate --policy plain      --json'), ('$ cat a\\n', 'cat a')]
    """
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*\n)", body, re.MULTILINE):
        yield match[0], match[1].replace("\\\n", " ").rstrip("\n")


def run(command: str, directory: Path, exit_code: int = 0) -> str:
    """Run one command as a reader of the documentation would, and return what it prints."""
    program, *rest = shlex.split(command)
    if not (program in SCRIPTS or program == "cat" or (program == "python" and rest[0].startswith("docs/"))):
        raise ValueError(f"{command!r}: not run in documentation (only: {', '.join(SCRIPTS)}, cat, python docs/...)")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [program, *rest], cwd=directory, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode != exit_code:
        raise ValueError(f"{command!r}: exit code {done.returncode}, not {exit_code}\n{done.stderr}")
    return done.stdout + (done.stderr if exit_code else "")


def main() -> None:
    """Rewrite every document that does not say what is printed now, and name it."""
    for document in documents():
        with tempfile.TemporaryDirectory() as directory:
            now = rerun(document, Path(directory))
        if not document.exists() or document.read_text("utf-8") != now:
            document.write_text(now, "utf-8")
            print(document.relative_to(ROOT))


if __name__ == "__main__":
    main()
