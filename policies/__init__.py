"""What to propose and when: lookup, drafter, governors. No clock, no engine, no file access."""

from __future__ import annotations

from policies.catalogue import assignments, load, names, policy_classes
from policies.drafter import UNLIMITED, Drafter
from policies.errors import PolicyError
from policies.governor import Governor, Match, State
from policies.lookup import SHADOW_TOKENS, Lookup, NoLookup
from policies.match_table import MatchTable, RecordedLookup, match_table
from policies.ngram_index import NgramIndex
from policies.policy import LookupPolicy, Policy, Prices
from policies.settings import OneOf, Range, near, settings_of

__all__ = [
    "SHADOW_TOKENS",
    "UNLIMITED",
    "Drafter",
    "Governor",
    "Lookup",
    "LookupPolicy",
    "Match",
    "MatchTable",
    "NgramIndex",
    "NoLookup",
    "OneOf",
    "Policy",
    "PolicyError",
    "Prices",
    "Range",
    "RecordedLookup",
    "State",
    "assignments",
    "load",
    "match_table",
    "names",
    "near",
    "policy_classes",
    "settings_of",
]
