"""One row for each request and policy, out of the document that `simulate --json` prints."""

from __future__ import annotations

import json
import subprocess

import pandas as pd

COMMAND = ["simulate", "--policy", "graded", "--policy", "gated", "--trace", "copy", "--trace", "story", "--json"]

document = json.loads(subprocess.run(COMMAND, capture_output=True, check=True).stdout)
runs = document.get("runs", [document])  # one policy on one trace is a document by itself
frame = pd.json_normalize(runs, "requests", [["policy", "name"], "profile"])
print(frame[["policy.name", "id", "rounds", "accepted", "speedup"]].round(3).to_string(index=False))
