"""What kind of reply a request is, by its tags: the category it counts in, and which rules hold for it.

The first tag is the category. Replies that repeat their prompt are where prompt lookup earns its keep; in free prose
it mostly finds chance. The two are told apart by words, so that the rules say the same of every model's recording.
"""

from __future__ import annotations

import re

from traces import Request

UNTAGGED = "untagged"
"""The category of a request without tags."""
HELD_OUT = "held-out"
"""The tag of a request that the search may not see."""
COPYING = ("copy", "edit", "summary", "summarise", "summarize")
"""First words of the categories whose replies repeat their prompt."""
PROSE = ("prose", "chat", "story", "write", "email")
"""Tags of free prose."""


def category(request: Request) -> str:
    """Return the first tag that says what the reply is."""
    return next((tag for tag in request.tags if tag != HELD_OUT), UNTAGGED)


def copies(name: str) -> bool:
    """Return whether the replies of a category repeat their prompt.

    >>> copies("edit"), copies("edit-json"), copies("editorial"), copies("chat")
    (True, True, False, False)
    """
    return re.split(r"[^a-z]", name.lower())[0] in COPYING


def is_prose(request: Request) -> bool:
    """Return whether a reply is free prose: tagged as such, in a category that does not copy."""
    return not copies(category(request)) and any(tag in PROSE for tag in request.tags)
