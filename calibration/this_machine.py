"""What this machine is, as far as the system tells: the provenance of everything that is measured on it."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from calibration.profile import UNKNOWN
from calibration.provenance import Machine

_BLAS = re.compile(r"/([^/]*(?:openblas|blis|mkl|libblas|libcblas|accelerate)[^/]*)$", re.IGNORECASE)
_THREAD_SETTINGS = ("OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def machine() -> Machine:
    """Return chip, cores, memory and system."""
    return Machine(chip=_chip(), cores=os.cpu_count(), memory=_memory(), os=_system())


def load_average() -> float | None:
    """Return how many processes wanted to run during the last minute; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def blas() -> str:
    """Return which linear algebra library is loaded into this process; ask after the engine was opened."""
    if sys.platform == "darwin":
        return "Accelerate"
    loaded = {line.split()[-1] for line in _lines("/proc/self/maps") if _BLAS.search(line)}
    # A preloaded library comes before mlx's own in every look-up, so it is the active one; numpy brings another,
    # which mlx never sees. What is preloaded is often a link to what is then loaded.
    folders = {Path(path).parent for path in loaded}
    named = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    preloaded = loaded & {str((folder / name).resolve()) for name in named for folder in folders}
    shown = preloaded or {path for path in loaded if "numpy" not in path}
    return ", ".join(sorted(Path(path).name for path in shown)) or UNKNOWN


def blas_threads() -> str:
    """Return how many threads the linear algebra uses: what a preloaded OpenBLAS says, else what is set."""
    with suppress(AttributeError):
        return str(ctypes.CDLL(None).openblas_get_num_threads())
    found = [f"{name}={os.environ[name]}" for name in _THREAD_SETTINGS if name in os.environ]
    return ", ".join(found) or "not set"


def power() -> str:
    """Return what the system says about power and speed limits, or `unknown`."""
    if sys.platform == "darwin":
        return " ".join(_output("pmset", "-g", "batt").split("\n")[0].split()) or UNKNOWN
    governor = _lines("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    supplies = [(path.parent.name, _lines(str(path))) for path in _supplies()]
    said = [f"{name} {' '.join(lines).strip()}" for name, lines in supplies if lines]
    return ", ".join([*(f"governor {line.strip()}" for line in governor), *said]) or UNKNOWN


def _chip() -> str:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string").strip() or UNKNOWN
    # ARM's /proc/cpuinfo names no model.
    said = _model_name(_lines("/proc/cpuinfo")) or _model_name(_output("lscpu").splitlines())
    return said or platform.processor() or platform.machine() or UNKNOWN


def _model_name(lines: Iterable[str]) -> str:
    return next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name")), "")


def _memory() -> str | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    return f"{size / 2**30:.0f} GiB"


def _system() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def _supplies() -> list[Path]:
    return sorted(Path("/sys/class/power_supply").glob("*/status")) if Path("/sys/class/power_supply").is_dir() else []


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
