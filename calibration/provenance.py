"""Where the figures of a profile come from: the machine, and how they came about."""

from __future__ import annotations

from dataclasses import dataclass, fields

from calibration import checks
from calibration.errors import ProfileError


@dataclass(frozen=True)
class Machine:
    """What the figures were measured on, as far as it is known."""

    chip: str
    cores: int | None = None
    memory: str | None = None
    os: str | None = None

    def __post_init__(self) -> None:
        for where in ("chip", "memory", "os"):
            words = getattr(self, where)
            if words is not None:
                checks.legible(words, f"machine.{where}")
        if self.cores is not None and self.cores < 1:
            raise ProfileError(f"machine.cores: must be at least 1 (got {self.cores})")


@dataclass(frozen=True)
class Provenance:
    """How the figures came about, in words, as far as it is known; nothing is computed from it."""

    device: str | None = None
    """What the engine calls the device it ran on."""
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    activations: str | None = None
    """The type that forwards compute in, which is not always that of the weights."""
    blas: str | None = None
    """The linear algebra library that was loaded."""
    blas_threads: str | None = None
    load_average: str | None = None
    """Processes that wanted to run when the measurement began."""
    power: str | None = None
    """What the system said about power and speed limits."""
    samples: str | None = None
    """The file of raw samples beside the profile."""

    def __post_init__(self) -> None:
        for field in fields(self):
            words = getattr(self, field.name)
            if words is not None:
                checks.legible(words, f"provenance.{field.name}")
