"""How fast requests are under a policy when a server decodes them side by side."""

from __future__ import annotations

from collections.abc import Sequence

from calibration import ServerCosts
from policies import Policy
from simulator.serving.results import Record
from simulator.serving.serve_trace import serve_in_memory
from simulator.serving.service import Service
from simulator.simulation import PLAIN
from traces import Request, Trace
from tuning.errors import TuningError
from tuning.evaluation import Speedups


class Served:
    """Requests of all categories served together; a speedup is that of decoding, from the first token to the last."""

    def __init__(self, requests: Sequence[Request], costs: Sequence[ServerCosts], service: Service) -> None:
        """Prepare to serve.

        Raises:
            TuningError: two requests of one name, or one that the server refuses.
            SimulationError: requests that the service cannot take.
            ProfileError: a forward that a profile has no cost of.
        """
        self.requests = tuple(requests)
        names = [request.id for request in requests]
        for name in names:
            if names.count(name) > 1:
                raise TuningError(f"request {name!r} comes twice; a server needs a name of its own for each")
        self._trace = Trace("requests to tune on", {"model": "whoever said them"}, self.requests)
        self._costs = costs
        self._service = service
        self._plain = [self._decode_s(PLAIN, one, service.pipelined()) for one in costs]

    def speedups(self, policy: Policy) -> Speedups:
        """Return the speedups; 1 for a reply of one token, which takes no time on either side.

        Raises:
            ProfileError: a forward that a profile has no cost of.
        """
        return tuple(
            tuple(
                before / after if after else 1.0
                for before, after in zip(plain, self._decode_s(policy, costs, self._service), strict=True)
            )
            for costs, plain in zip(self._costs, self._plain, strict=True)
        )

    def _decode_s(self, policy: Policy, costs: ServerCosts, service: Service) -> list[float]:
        result = serve_in_memory(self._trace, policy, costs, service)
        records: dict[str, Record] = {one["id"]: one for one in result.records if one}
        refused = [request.id for request in self.requests if request.id not in records]
        if refused:
            raise TuningError(f"request {refused[0]!r} is refused by the server; give no --queue-limit to tune")
        return [records[request.id]["decode_s"] for request in self.requests]
