"""The formats there are, by the name that a command line gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from traces.importing import (
    arctic_inference,
    azure,
    llmservingsim,
    mooncake,
    pairs,
    sharegpt,
    specdecode_bench,
    vllm_vcr,
)
from traces.importing.exchange import Exchange

PAIRS: Mapping[str, Callable[[str, tuple[str, str]], Iterator[Exchange]]] = {
    "pairs": pairs.read,
    "arctic-inference": arctic_inference.read,
}
"""What was said, in two columns that a user may name."""

EXCHANGES: Mapping[str, Callable[[str], Iterator[Exchange]]] = {
    "sharegpt": sharegpt.read,
    "llmservingsim": llmservingsim.read,
    "specdecode-bench": specdecode_bench.read,
    "vllm-vcr": vllm_vcr.read,
}
"""What was said."""

ARRIVALS: Mapping[str, Callable[[str], Iterator[float]]] = {
    "mooncake": mooncake.read,
    "azure": azure.read,
}
"""When requests came."""
