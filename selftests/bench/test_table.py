#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The judge of the bench can say no. KTAP on stdout."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lab"))

import harness  # noqa: E402
from harness import equal, test  # noqa: E402


def judged(*options, **loads):
    """(exit code, output) of table.py for made-up counts, {load: (with statistics, without)}."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"kernel": "7.2", "packets": 9, "loads": {
            load: {"now": [now + 3, now], "no-stats": [without, without + 5]} for load, (now, without) in loads.items()
        }}, file)
        file.flush()
        done = subprocess.run([sys.executable, os.path.join(HERE, "table.py"), *options, file.name], text=True,
                              capture_output=True, check=False)
    equal(done.stderr, "")
    return done.returncode, done.stdout


@test
def cost_within_the_bound_passes():
    code, text = judged("--ktap", empty=(115, 100), waiting=(110, 99))
    equal((code, text.count("\nok ")), (0, 2), text)
    assert "13.0 instructions per packet on average, 15.0 at most (empty); 15 allowed" in text, text


@test
def cost_beyond_the_bound_under_one_load_fails():
    code, text = judged("--ktap", empty=(115.1, 100), waiting=(110, 99))
    equal(code, 1)
    assert "\nnot ok 1 statistics_cost_at_most_15_instructions" in text and "\nok 2 " in text, text
    code, text = judged("--most", "16", empty=(115.1, 100))
    equal((code, "FAILED" in text), (0, False))


@test
def module_that_saves_nothing_without_statistics_fails():
    code, text = judged("--ktap", empty=(115, 100), waiting=(100, 100))
    equal(code, 1)
    assert "\nok 1 " in text and "\nnot ok 2 module_without_statistics_is_cheaper" in text, text


if __name__ == "__main__":
    sys.exit(harness.main())
