"""What is searched for: a policy's settings, on which machines, and by which rules; everything but the requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibration import Profile, ProfileError
from policies import LookupPolicy, Policy, settings_of
from simulator.serving.service import Service
from traces import Request
from tuning.errors import TuningError
from tuning.evaluation import Alone, Evaluator
from tuning.kinds import category
from tuning.score import Judge, Rules
from tuning.served import Served
from tuning.space import Space


@dataclass(frozen=True)
class Problem:
    """A search, as far as it does not depend on what was said."""

    space: Space
    profiles: tuple[Profile, ...]
    """The machines; the worst of them counts."""
    rules: Rules
    service: Service | None = None
    """The server; None decodes one request at a time."""
    interpolate_widths: bool = False
    """Whether widths between measured ones are filled in."""

    @property
    def shipped(self) -> Policy:
        """The policy with its shipped constants, but for blocks that there are no costs of."""
        return self.space.shipped

    def evaluator(self, requests: Sequence[Request]) -> Evaluator:
        """Return what says how fast these requests are under a policy.

        Raises:
            ProfileError: a prompt, or plain decoding of a reply, that a profile has no cost of.
            SimulationError: requests that the server cannot take.
        """
        costs = [profile.costs(interpolate_widths=self.interpolate_widths) for profile in self.profiles]
        if self.service is None:
            return Alone(requests, costs, most_draft(self.space))
        storage = self.service.server.kv_storage
        pairs = zip(self.profiles, costs, strict=True)
        return Served(requests, [profile.server_costs(one, storage) for profile, one in pairs], self.service)

    def judge(self, requests: Sequence[Request], evaluator: Evaluator) -> Judge:
        """Return what scores speedups of these requests.

        Raises:
            ProfileError: a forward of the shipped rules that a profile has no cost of.
        """
        return Judge(requests, self.rules, evaluator.speedups(self.shipped))

    def check_weights(self, requests: Sequence[Request]) -> None:
        """Refuse a weight of a category that no request is in.

        Raises:
            TuningError: there is one.
        """
        known = sorted({category(request) for request in requests})
        for name in self.rules.weights:
            if name not in known:
                raise TuningError(f"--weight {name}: no request is in that category (have: {', '.join(known)})")

    def digests(self, requests: Sequence[Request]) -> dict[str, str]:
        """Return digests of the space, the profiles, the rules and the requests."""
        rules: dict[str, Any] = asdict(self.rules) | {"serve": self.service.settings if self.service else None}
        profiles = [profile.document() for profile in self.profiles]
        return {
            "space": digest(self.space.document()),
            "profiles": digest([profiles, self.interpolate_widths]),
            "rules": digest(rules),
            "traces": digest([_document(request) for request in requests]),
        }


def widest_priced(profiles: Sequence[Profile], *, interpolate_widths: bool) -> int:
    """Return the widest verify that every profile has a cost of, together with all narrower ones.

    Raises:
        ProfileError: not even width 2.
    """
    found = []
    for profile in profiles:
        widths = set(profile.costs(interpolate_widths=interpolate_widths).widths)
        widest = next(width for width in range(1, max(widths) + 2) if width + 1 not in widths)
        if widest < 2:
            raise ProfileError(f"profile {profile.name} has no cost of width 2; --interpolate-widths may fill it in")
        found.append(widest)
    return min(found)


def most_draft(space: Space) -> int:
    """Return the largest `max_draft` that a search may ask for; 1 for a policy without lookup."""
    if not issubclass(space.kind, LookupPolicy):
        return 1
    for dimension in space.dimensions:
        if dimension.name == "max_draft":
            return max((one for one in dimension.choices if isinstance(one, int)), default=int(dimension.high))
    return int(str(space.fixed.get("max_draft", settings_of(space.kind)["max_draft"].default)))


def digest(document: Any) -> str:
    """Return the first 16 digits of the SHA-256 of plain values."""
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _document(request: Request) -> list[Any]:
    tokens = hashlib.sha256(request.prompt.tobytes() + b"/" + request.reply.tobytes()).hexdigest()
    rest = (request.finish, request.max_tokens, request.arrival_s, request.eligible, request.pipelinable, request.tags)
    return [request.id, tokens, *rest]
