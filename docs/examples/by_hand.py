"""A reply short enough to follow by hand: what the lookup offers at every context, and what becomes of it."""

from __future__ import annotations

import policies
from calibration import Costs
from simulator import run
from traces import Request

PROMPT = [10, 11, 12, 13, 14, 15, 16, 17, 18]
REPLY = [50, 11, 12, 13, 14, 99, 13, 14, 15, 16, 17, 18]

request = Request.of("by hand", PROMPT, REPLY, "length")
text = PROMPT + REPLY

print("context  ends in   offered                     comes true")
table = policies.match_table(request.prompt, request.reply, cap=7)
index = policies.NgramIndex(text)
for context in range(len(PROMPT) + 1, len(text) + 1):
    offered = index.proposal(context, 7)
    true = int(table.true_tokens[context - len(PROMPT) - 1])
    ending = " ".join(map(str, text[context - 2 : context]))
    shown = " ".join(map(str, offered)) or "-"
    print(f"{context:7}  {ending:8}  {shown:26}  {f'{true} of {len(offered)}' if offered else '-'}".rstrip())

# Forwards of 10 ms at every width, and 1 ms of the host: a machine made up for this page.
costs = Costs("made up", range(1, 100), dict.fromkeys(range(1, 9), 0.010), read_s=0.001)
print()
for name in ("plain", "fixed", "graded", "gated"):
    result = run(request, policies.load(name), costs)
    print(f"{name:6}  {result.decode_s * 1000:5.1f} ms  {result.schedule.codes}")
