"""What a governor is: the running half of a policy, which decides how many tokens may be proposed."""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """What a governor may see when it is asked: the past only."""

    remaining: int
    """Tokens that may still be emitted; very large without a limit."""
    context: int
    """Prompt and emitted tokens, the unread token of a step in flight not counted."""
    in_flight: bool
    """Whether a submitted forward has not been read."""
    plain_streak: int
    """Asks in a row, before this one, that were answered with nothing."""
    rows: int
    """Requests decoded side by side."""


class Match(NamedTuple):
    """What the lookup found, cut to the budget."""

    tokens: int
    """Tokens that could be proposed."""
    length: int
    """Tokens of the suffix that was found earlier in the context."""


class Governor:
    """Decides, for one request, how many tokens may be proposed; made fresh for every request.

    The drafter calls `budget` once for every ask, `choose` when the lookup then found something, `record` after
    every verify (never for an ask that was retracted), and `confirm` or `refute` when a shadow probe is settled,
    which is before `budget` in the same ask.
    """

    paused: bool = False
    """Whether no proposal can come before a probe is confirmed; plain rounds are pipelined at once."""

    @property
    def probing(self) -> bool:
        """Whether a shadow probe may be opened; read after `budget` or `rest`."""
        return False

    def budget(self, state: State) -> int:
        """Return how many tokens may be proposed now; 0 pauses this ask."""
        raise NotImplementedError

    def choose(self, state: State, match: Match) -> int:
        """Return how many of `match.tokens` to propose, from 0 to all; all unless overridden."""
        return match.tokens

    def record(self, accepted: int) -> None:
        """Learn that a verify round landed `accepted` tokens."""

    def confirm(self) -> None:
        """Learn that a shadow probe came true."""

    def refute(self) -> None:
        """Learn that a shadow probe came false."""

    def rest(self, context: int, asks: int) -> int | None:
        """Take up to `asks` asks in a row that are sure to be granted 0, as one; say how many were taken.

        The first of them sees `context`, each further one a token more, and nothing is recorded or settled between
        them. 0 says that the next ask is granted something and that asking again would change nothing until a round
        is recorded or a probe settled. None, the default, says that nobody can tell: every ask is made one by one.
        A replay uses this to walk rounds instead of tokens. Where `probing` then holds, a probe may come true before
        all that were taken are used up, so a governor that probes must change nothing here.
        """
        return None
