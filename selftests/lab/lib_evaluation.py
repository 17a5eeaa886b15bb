# SPDX-License-Identifier: GPL-2.0-only
"""A small campaign with one claim, for test_evaluation.py and test_publish.py."""

import os
import tempfile

import scenario
import store
from mock_machine import WORK

MADE_OF = {"kernel": "7.2.1 aaaa", "method": "bbbb 3G", "module": "cccc"}
RUNS = 'experiments = ["fig8"], cases = ["A5-B?-cubic"], senders = ["prague", "dctcp"], seconds = 50'
PLAN = f"""[[step]]
title = "One"
seeds = 2
runs = [{{ {RUNS}, aqms = ["dualpi2"] }}]

[[step]]
title = "Two"
seeds = 1
runs = [{{ {RUNS}, aqms = ["pie"] }}]
"""
CLAIM = """[paper.p]
name = "P"
title = "A paper"

[[claim]]
id = "mean"
paper = "p"
place = "Fig. 1"
words = "The mean is small"
kind = "number"
figure = "a_mean_ms"
experiments = ["fig8"]
cases = ["A5-B5-*"]
aqms = ["dualpi2"]
senders = ["prague", "dctcp"]
bound = [0, 1]
bound_from = "paper"
"""


def directory(plan=PLAN, said=CLAIM):
    """A directory with these files in the place of evaluation/."""
    made = tempfile.mkdtemp(dir=WORK)
    for name, text in (("campaign.toml", plan), ("claims.toml", said)):
        with open(os.path.join(made, name), "w", encoding="utf-8") as file:
            file.write(text)
    return made


def refused(function, *arguments):
    """The message of the ScenarioError or StoreError that a call must raise."""
    try:
        function(*arguments)
    except (scenario.ScenarioError, store.StoreError) as error:
        return str(error)
    raise AssertionError("accepted")
