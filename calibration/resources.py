"""What an engine runs out of, said in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calibration.engine import EngineError

SIGNS = ("allocat", "out of memory", "insufficient memory")
"""What mlx says then, on a processor, CUDA or Metal."""


@contextmanager
def enough_memory() -> Iterator[None]:
    """Turn what mlx and Python raise when memory is short into one line.

    Raises:
        EngineError: out of memory.
    """
    try:
        yield
    except MemoryError as error:
        raise EngineError("out of memory; use a smaller model, fewer contexts or a shorter trace") from error
    except RuntimeError as error:
        # mlx has no class of its own for it.
        words = str(error).splitlines()[0] if str(error) else ""
        if not any(sign in words.lower() for sign in SIGNS):
            raise
        raise EngineError(f"out of memory ({words}); use a smaller model, fewer contexts or a shorter trace") from error
