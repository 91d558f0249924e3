"""A batched engine without a model: it keeps the tokens of every row's KV state, so that a wrong position shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from policies import Drafter, LookupPolicy, NgramIndex, Policy, Prices
from simulator.serving.actions import (
    NOTHING,
    Action,
    Outcome,
    Prefill,
    Read,
    Release,
    Step,
    Submit,
    Unwind,
    Verify,
    Warm,
)
from simulator.serving.row import TOKEN, Job, Landed, Row
from simulator.serving.server import Server
from traces import Request

STOP = -1


class Cache:
    """The state of one row: what it was asked, what it says, and what an engine keeps of it."""

    def __init__(self, request: Request) -> None:
        self.prompt: list[int] = request.prompt.tolist()
        self.reply: list[int] = request.reply.tolist()
        self.guarded = request.finish == "guard"
        self.tokens = [*self.prompt]
        """The prompt and what was sampled and read since."""
        self.kv: list[int] = []
        """Tokens fed, one a position."""
        self.index = NgramIndex(self.tokens)

    def feed(self, *tokens: int) -> list[int]:
        """Forward tokens and return what is sampled at each: it depends on the position only, and means nothing before
        the prompt's last token or past the reply's."""
        first = len(self.kv) + 1 - len(self.prompt)
        self.kv += tokens
        return [
            self.reply[place] if 0 <= place < len(self.reply) else STOP for place in range(first, first + len(tokens))
        ]

    def take(self, sampled: int) -> Landed:
        """Emit a sampled token, if it is one."""
        if sampled == STOP:
            return Landed(0, end="stop")
        self.tokens.append(sampled)
        ended = self.guarded and len(self.tokens) == len(self.prompt) + len(self.reply)
        return Landed(1, end="guard") if ended else TOKEN


class BatchEngine:
    """Executes the actions of a scheduler, and holds each to what an engine could do."""

    def __init__(self, policy: Policy, prices: Prices, server: Server) -> None:
        self.caches: dict[Row, Cache] = {}
        self.warmed: list[str] = []
        """Ids of the rows that verifies were warmed up on."""
        self._policy = policy
        self._prices = prices
        self._server = server
        self._requests: dict[str, Request] = {}
        self._latest: dict[str, Cache] = {}
        self._flights: deque[dict[Row, int]] = deque()

    def job(self, request: Request) -> Job:
        """Take in a request."""
        self._requests[request.id] = request
        limit = self._server.limit(len(request.prompt), request.max_tokens or 2**62)
        drafts = request.eligible and isinstance(self._policy, LookupPolicy)
        make = (lambda: self._drafter(request.id)) if drafts else None
        return Job(request.id, len(request.prompt), limit, request.pipelinable, make)

    def answer(self, action: Action) -> Outcome:
        """Execute one action."""
        match action:
            case Prefill(rows, tokens):
                return self._prefill(rows, tokens)
            case Step(rows):
                assert not self._flights
                return _ends({row: self._at(row).take(*self._fed(row)) for row in rows})
            case Submit(rows):
                before = self._flights[-1] if self._flights else {row: self._at(row).tokens[-1] for row in rows}
                self._flights.append({row: self._at(row).feed(before[row])[0] for row in rows})
            case Read(rows):
                assert [*self._flights[0]] == [*rows]
                return _ends({row: self._at(row).take(token) for row, token in self._flights.popleft().items()})
            case Verify(row, proposed):
                return {row: self._verify(self._at(row), proposed)}
            case Unwind(rows, positions):
                self._flights.clear()
                for row in rows:
                    del self._at(row).kv[-positions:]
            case Warm(row, _):
                self.warmed.append(row.id)
            case Release(rows):
                assert not self._flights
                for row in rows:
                    self.caches.pop(row, None)  # there is none if the first forward failed
        return NOTHING

    def reply(self, row: Row) -> list[int]:
        """Return the tokens that a row has emitted."""
        return self.caches[row].tokens[row.job.prompt_tokens : row.context] if row in self.caches else []

    def _prefill(self, rows: Sequence[Row], tokens: int) -> Outcome:
        assert not self._flights
        landed = {}
        for row in rows:
            if row.prefilled == 0:
                self.caches[row] = self._latest[row.id] = Cache(self._requests[row.id])
            cache = self.caches[row]
            sampled = cache.feed(*cache.prompt[row.prefilled : row.prefilled + tokens])
            if len(cache.kv) == len(cache.prompt):
                landed[row] = cache.take(sampled[-1])
        return _ends(landed)

    def _at(self, row: Row) -> Cache:
        """Return the state of a row, without tokens that were read and not committed."""
        cache = self.caches[row]
        del cache.tokens[row.context :]
        return cache

    def _fed(self, row: Row) -> list[int]:
        cache = self._at(row)
        return cache.feed(cache.tokens[-1])

    def _verify(self, cache: Cache, proposed: int) -> Landed:
        """Walk the positions as the reference does: emit, then go on only where the proposal was right."""
        assert not self._flights
        proposal = cache.index.proposal(len(cache.tokens), proposed)
        assert len(proposal) == proposed
        positions = len(cache.kv)
        emitted = accepted = 0
        end = None
        for sampled, claimed in zip(cache.feed(cache.tokens[-1], *proposal), [*proposal, None], strict=True):
            landed = cache.take(sampled)
            emitted += landed.emitted
            end = landed.end
            if end or sampled != claimed:
                break
            accepted += 1
        del cache.kv[positions + emitted :]
        return Landed(emitted, accepted, end)

    def _drafter(self, name: str) -> Drafter:
        """Make a drafter over an index of the row's own tokens, which knows nothing to come."""
        policy, cache = self._policy, self._latest[name]
        assert isinstance(policy, LookupPolicy)
        cache.index = NgramIndex(
            cache.tokens,
            ngram_max=policy.ngram_max,
            ngram_min=policy.ngram_min,
            max_draft=policy.max_draft,
            match=policy.match,
        )
        return Drafter(policy.governor(self._prices), cache.index, len(cache.prompt) + 1)


def _ends(landed: dict[Row, Landed]) -> Outcome:
    return {row: one for row, one in landed.items() if one != TOKEN}
