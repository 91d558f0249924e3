"""Whether trace, profile, engine and machine belong together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from calibration import Profile, checkpoints, names, shipped, this_machine
from calibration.engine import Engine, EngineError, Sampler
from calibration.profile import UNKNOWN
from calibration.provenance import Provenance
from simulator.replay.errors import ReplayError
from traces import Request


def profile_of(model: str, dtype: str) -> Profile:
    """Return the shipped profile of a model and dtype, of this machine if one is.

    Of several, it is the one whose host has the least to do.

    Raises:
        ReplayError: there is none.
    """
    known = map(shipped, names())
    found = [profile for profile in known if profile.model == model and same_dtype(profile.dtype, dtype)]
    if found:
        chip = this_machine.machine().chip
        return min(found, key=lambda profile: (profile.machine.chip != chip, profile.host_work_s))
    raise ReplayError(
        f"no shipped profile of {model} {dtype} (shipped: {', '.join(names())}); calibrate makes one, "
        "--profile takes it"
    )


def same_dtype(one: str, other: str) -> bool:
    """Return whether two words mean one dtype: what a checkpoint calls q4 is 4bit where its costs were published.

    >>> same_dtype("4bit", "q4"), same_dtype("q4", "q8")
    (True, False)
    """
    plain, again = (re.sub(r"^(\d+)bit$", r"q\1", word) for word in (one, other))
    return plain == again


def sampler_of(header: Mapping[str, Any]) -> Sampler:
    """Return how the tokens of a trace were chosen; greedily if it does not say.

    Raises:
        ReplayError: in a way that no engine repeats.
    """
    said = header.get("sampler", {"kind": "greedy"})
    if said == {"kind": "greedy"}:
        return Sampler()
    try:
        if said["kind"] == "keyed":
            return Sampler(float(said["temperature"]), int(said["seed"]))
    except (KeyError, TypeError, ValueError, EngineError) as error:
        raise ReplayError(f"the trace's sampler cannot be repeated ({error})") from error
    raise ReplayError(f"the trace's sampler cannot be repeated (got {said!r})")


def mismatches(header: Mapping[str, Any], engine: Mapping[str, Any], profile: Profile) -> Iterator[str]:
    """Yield what speaks against replaying a trace on an engine and holding a profile against it.

    Args:
        header: of the trace.
        engine: what the engine says of itself and its machine, as far as it is known; see `session.said_by`.
        profile: what is held against it.
    """
    for name in ("model", "tokenizer_sha256"):
        if name in header and name in engine and header[name] != engine[name]:
            yield f"the trace is of another {_WORDS[name]} than the engine's ({header[name]!r} and {engine[name]!r})"
    if (
        header.get("dtype") == engine.get("dtype")
        and not _converted(header, engine)
        and header.get("weights_sha256", engine.get("weights_sha256")) != engine.get("weights_sha256")
    ):
        yield "the trace is of other weights than the engine's, of the same name and dtype"
    about = asdict(profile.provenance or Provenance())
    for name, known in (("model", profile.model), ("tokenizer_sha256", about["tokenizer_sha256"])):
        if known and name in engine and known != engine[name]:
            yield f"the profile is of another {_WORDS[name]} than the engine's ({known!r} and {engine[name]!r})"
    known = about["weights_sha256"]
    # A named model's weights are converted on each machine; see `_converted`.
    named = engine.get("checkpoint") in checkpoints.NAMES
    if (
        known
        and not named
        and same_dtype(profile.dtype, engine.get("dtype", ""))
        and known != engine.get("weights_sha256", known)
    ):
        yield "the profile is of other weights than the engine's, of the same name and dtype"
    machine = profile.machine
    if "chip" in engine and machine.chip != engine["chip"]:
        yield f"the profile is of another machine than the engine's ({machine.chip!r} and {engine['chip']!r})"
    elif machine.cores and machine.cores != engine.get("cores", machine.cores):
        yield f"the profile is of another machine than the engine's ({machine.cores} cores and {engine['cores']})"
    elif about["device"] and about["device"] != engine.get("device"):
        yield f"the profile is of another device than the engine's ({about['device']!r} and {engine.get('device')!r})"


def _converted(header: Mapping[str, Any], engine: Mapping[str, Any]) -> bool:
    """Return whether both weights were converted from the one file that a name stands for.

    That file is checked by its hash. The converted one has the same tensors everywhere, but mlx writes them in an order
    that is the C++ library's.
    """
    return header.get("checkpoint") == engine.get("checkpoint") and header.get("checkpoint") in checkpoints.NAMES


_WORDS = {"model": "model", "tokenizer_sha256": "tokenizer"}


def other_dtypes(header: Mapping[str, Any], engine: Mapping[str, Any], profile: Profile) -> Iterator[str]:
    """Yield where a trace or a profile is of another dtype than is replayed: forced replay only notes it."""
    dtype = engine.get("dtype")
    if header.get("dtype", dtype) != dtype:
        yield f"recorded in {header['dtype']}, replayed in {dtype}: another reply would be no surprise"
    if not same_dtype(profile.dtype, str(dtype)):
        yield f"the profile is of another dtype than the engine's ({profile.dtype!r} and {dtype!r})"


def other_blas(profile: Profile, blas: str) -> Iterator[str]:
    """Yield a line where another library multiplies than when the profile was measured."""
    measured = profile.provenance.blas if profile.provenance else None
    if measured not in (None, UNKNOWN, blas) and blas != UNKNOWN:
        yield f"the profile was measured with another BLAS ({measured}, now {blas})"


def recorded_alike(header: Mapping[str, Any], engine: Mapping[str, Any]) -> bool:
    """Return whether the recording was made with the same weights, dtype, versions and device: it must repeat then."""
    alike = ("weights_sha256", "dtype", "mlx", "mlx_lm", "device")
    return all(header.get(name) == engine.get(name) for name in alike)


def check_tokens(requests: Iterable[Request], engine: Engine) -> None:
    """Refuse a trace with ids that the model does not know.

    Raises:
        ReplayError: with the first of them.
    """
    for request in requests:
        largest = int(max(request.prompt.max(), request.reply.max()))
        if largest >= engine.vocabulary:
            raise ReplayError(
                f"request {request.id!r}: holds token {largest}, and the model knows {engine.vocabulary}; "
                "the trace is of another tokenizer"
            )


def first_tokens(request: Request, count: int | None) -> Request:
    """Return a request whose reply was limited to `count` tokens."""
    if count is None or len(request.reply) <= count:
        return request
    return Request.of(
        id=request.id,
        prompt=request.prompt,
        reply=request.reply[:count],
        finish="length",
        eligible=request.eligible,
        reason=request.reason,
        pipelinable=request.pipelinable,
        tags=request.tags,
    )
