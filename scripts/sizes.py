#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Limits of size, for scripts/style.sh: prints each function and source file that is longer.

Generated files, corpora, manuals and data are not judged.
"""

import ast
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
FUNCTION, TEST, FILE = 70, 600, 1000
SOURCE = re.compile(r"\.(c|h|py|sh|mk)$|(^|/)(Makefile|Kbuild|in_vm)$|^scripts/run$|^tools/bin/dualpi2(-top)?$")
IS_TEST = re.compile(r"(^|/)test_|_test\.[ch]$|^selftests/(fuzz|net|unit|tdc|tc|tools)/|^extra/.*/unit/")
# Longer, because: one subject that would lose by being split.
FILES = {
    "sch_dualpi2.c": "a qdisc is one file, as in the kernel's net/sched",
}


def functions(path, text):
    """(name, first line, lines) of each function."""
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield node.name, node.lineno, node.end_lineno - node.lineno + 1
    elif path.endswith((".c", ".h", ".sh")) or text.startswith("#!/bin/bash"):
        begin = re.compile(r"^(\w+)\(\) [{(]" if not path.endswith((".c", ".h")) else r"^[a-z_](?!ypedef).*?(\w+)\(")
        name, start = None, 0
        for number, line in enumerate(text.splitlines(), 1):
            match = begin.match(line)
            if match and not line.endswith((";", "}", "\\")):
                name, start = match[1], number
            elif name and line in ("}", ")"):
                yield name, start, number - start + 1
                name = None
            elif name and line.endswith(";") and line == line.lstrip():
                name = None


def main():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    for path in sorted(filter(SOURCE.search, names)):
        if not os.path.exists(os.path.join(ROOT, path)):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        lines, most = text.count("\n"), TEST if IS_TEST.search(path) else FILE
        if lines > most and path not in FILES:
            print(f"{path}: {lines} lines; at most {most}, split it by subject")
        for name, start, length in functions(path, text):
            if length > FUNCTION:
                print(f"{path}:{start}: {name} has {length} lines; at most {FUNCTION}")


if __name__ == "__main__":
    main()
