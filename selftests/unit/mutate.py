#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Mutation score of the unit tests: every small change of include/net/dualpi2.h, and of the headers that it includes,
that a fixed list of rules can make, one at a time, each to be noticed by a test.

The rules are: another relation, operator, shift or assignment; a constant one more, one less, 0 or 1; another name of
the same enum, another member of the same type of the same struct; a condition, or a part of one, turned round, always
true or never; a sign, "not" or cast left out; a statement, "else", member or initial value left out; the arguments of a
call exchanged, the greater for the lesser of two; another value returned.

A change after which gcc -O2 makes the same objects as before, of 64 and 32 bit, is equivalent and does not count; nor
does one that mutate-equivalent.txt gives a reason for. The others are run against all tests, and if they survive that,
with ASan and UBSan, and on 32 bit, as "make check" does too.

The changed function is compiled alone; the others and the tests were compiled before. A change of a macro is compiled
with the tests. Results are kept in build/unit/mutate.tsv as long as neither the header nor a test nor this file
changes, so that a run can be interrupted and taken up again.

--again keeps what earlier tests noticed, and tries only the rest: for use while tests are added.

--sample draws as the headers and the tests have it: the same from the same sources, on any day and machine, and others
after each change of them. --seed draws others still, by a number.

--only takes the changes whose "file:line: description", as it is printed of one that survives, holds TEXT.

usage: mutate.py [--sample N [--seed S]] [--jobs N] [--list] [--again] [--header FILE] [--only TEXT] [--at-least PCT]
"""

import argparse
import bisect
import collections
import concurrent.futures
import dataclasses
import hashlib
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

UNIT = Path(__file__).resolve().parent
TOP = UNIT.parent.parent
BUILD = TOP / "build" / "unit"
EQUIVALENT = UNIT / "mutate-equivalent.txt"
GCC = ["gcc", "-std=gnu11", "-w", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"]
VARIANTS = {"plain": ["-O2"], "sanitized": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
            "32-bit": ["-O1", "-m32"]}
TIMEOUT_S = 60    # a run of all tests takes seconds; one that does not end has noticed the change

TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|//[^\n]*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<op><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\?:|.)""",
    re.S | re.X,
)
FUNCTION = re.compile(r"^static inline [^;{]*?\b(\w+)\(([^{;]*)\)\n\{\n(.*?)^\}\n", re.S | re.M)
MACRO = re.compile(r"^#define[ \t]+(\w+)[ \t]+(.*)$", re.M)
KEYWORDS = {"return", "if", "else", "while", "sizeof", "struct", "enum", "const", "case", "switch", "default"}
# Where the list of options is, after the directory of the changed header.
INCLUDES = f"-I{TOP / 'include'}"
INCLUDE = re.compile(r"#include <net/(\w+\.h)>")
TYPES = {"u8", "u32", "u64", "s32", "s64", "bool", "struct", "enum", "const", "static", "unsigned", "int"}
RELATIONS = ["<", "<=", ">", ">=", "==", "!="]
ARITHMETIC = ["+", "-", "*", "/", "%"]
OTHERS = {
    "<<": [">>"], ">>": ["<<"], "&": ["|", "^"], "|": ["&", "^"], "^": ["&", "|"], "&&": ["||"], "||": ["&&"],
    "+=": ["-=", "="], "-=": ["+=", "="], "++": ["--"], "--": ["++"],
    **{op: [o for o in RELATIONS if o != op] for op in RELATIONS},
    **{op: [o for o in ARITHMETIC if o != op] for op in ARITHMETIC},
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Mutant:
    where: str  # function or macro
    begin: int
    end: int
    new: str
    rule: str
    macro: bool
    number: int = 1  # of those that look the same

    def apply(self, source):
        return source[: self.begin] + self.new + source[self.end :]

    def describe(self, source):
        """The line with the change in double brackets, the same as long as the line is the same."""
        first = source.rfind("\n", 0, self.begin) + 1
        last = source.find("\n", self.end)
        change = f"[[{source[self.begin : self.end]} => {self.new}]]"
        text = source[first : self.begin] + change + source[self.end : last]
        return f"{self.where}: {' '.join(text.split())}" + (f" ({self.number})" if self.number > 1 else "")


def tokens_of(source, begin, end):
    found = []
    for match in TOKEN.finditer(source, begin, end):
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
    return found


def pairs_of(tokens):
    """Index of the bracket that belongs to the one at an index, both ways."""
    pairs, open_ones = {}, []
    for index, token in enumerate(tokens):
        if token.text in "([{":
            open_ones.append(index)
        elif token.text in ")]}":
            pairs[index] = open_ones.pop()
            pairs[pairs[index]] = index
    return pairs


class Generator:
    def __init__(self, source):
        self.source = source
        self.found = {}
        plain = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), source, flags=re.S)
        self.siblings = {}
        for body in re.findall(r"^enum \w+ \{(.*?)^\};", plain, re.S | re.M):
            names = re.findall(r"\b(DUALPI2_\w+)\b", body)
            self.siblings.update({name: [other for other in names if other != name] for name in names})
        self.members = {}
        for struct, body in re.findall(r"^struct (\w+) \{(.*?)^\};", plain, re.S | re.M):
            fields = re.findall(r"^\s*(.*?)\s*\b(\w+);", body, re.M)
            self.members[struct] = {
                name: [other for kind2, other in fields if kind2 == kind and other != name] for kind, name in fields
            }
        self.macros = {}
        for match in MACRO.finditer(plain):
            if match.group(2).strip():
                self.macros[match.group(1)] = match
        for name, match in self.macros.items():
            self.where, self.macro = name, True
            self.tokens = tokens_of(source, match.start(2), match.end(2))
            self.operators()
        for match in FUNCTION.finditer(plain):
            self.where, self.macro = match.group(1), False
            self.types = {name: struct for struct, name in re.findall(r"struct (\w+) \*(\w+)", match.group(2))}
            self.tokens = tokens_of(source, match.start(3), match.end(3))
            self.pairs = pairs_of(self.tokens)
            self.operators()
            self.names()
            self.conditions()
            self.calls()
            self.statements()
        seen = collections.Counter()
        for text, mutant in self.found.items():
            name = mutant.describe(source)
            seen[name] += 1
            self.found[text] = dataclasses.replace(mutant, number=seen[name])

    def add(self, begin, end, new, rule):
        old = self.source[begin:end]
        if old != new:
            mutant = Mutant(self.where, begin, end, new, rule, self.macro)
            self.found.setdefault(mutant.apply(self.source), mutant)

    def replace(self, token, new, rule):
        self.add(token.begin, token.end, new, rule)

    def text(self, first, last):
        return self.source[self.tokens[first].begin : self.tokens[last].end]

    def is_binary(self, index):
        if not index:
            return False
        before = self.tokens[index - 1]
        if before.text == ")" and not self.macro:
            inner = self.tokens[self.pairs[index - 1] + 1 : index - 1]
            return not (inner and inner[0].text in TYPES)
        return before.kind == "number" or before.text in ")]" or (before.kind == "word" and before.text not in KEYWORDS)

    def operators(self):
        for index, token in enumerate(self.tokens):
            if token.kind == "number":
                digits, suffix = re.fullmatch(r"(.*?)([uUlL]*)", token.text).groups()
                value = int(digits, 0)
                for other in (value + 1, value - 1, 0, 1):
                    if other >= 0:
                        self.replace(token, f"{other}{suffix}", "constant")
            elif token.text in OTHERS and token.kind == "op" and (token.text not in "*&-+" or self.is_binary(index)):
                for other in OTHERS[token.text]:
                    self.replace(token, other, "operator")
            elif token.text in "-!~" and token.kind == "op":
                self.replace(token, "", "sign")
            elif token.text == "U32_MAX" or (token.kind == "word" and token.text in self.macros):
                self.replace(token, f"({token.text} - 1)", "constant")
                self.replace(token, f"({token.text} + 1)", "constant")
                self.replace(token, "0", "constant")

    def names(self):
        for index, token in enumerate(self.tokens):
            for other in self.siblings.get(token.text, []):
                self.replace(token, other, "enum")
            if token.text in ("true", "false"):
                self.replace(token, "false" if token.text == "true" else "true", "constant")
            if token.text == "->":
                member = self.tokens[index + 1]
                struct = self.types.get(self.tokens[index - 1].text)
                for other in self.members.get(struct, {}).get(member.text, []):
                    self.replace(member, other, "member")
            # a cast
            is_type = token.text == "(" and self.tokens[index + 1].text in TYPES - {"struct"}
            if is_type and self.pairs[index] == index + 2:
                self.add(token.begin, self.tokens[index + 2].end, "", "cast")

    def extent(self, index, step, stops):
        """From index on, as far as an expression goes."""
        index += step
        last = None
        while 0 <= index < len(self.tokens):
            text = self.tokens[index].text
            if text in stops or (text in ")]}" if step > 0 else text in "([{"):
                break
            if text in "()[]{}":
                index = self.pairs[index]
            last = index
            index += step
        return last

    def condition(self, first, last):
        begin, end = self.tokens[first].begin, self.tokens[last].end
        text = self.source[begin:end]
        for new in (f"!({text})", "1", "0"):
            self.add(begin, end, new, "condition")

    def conditions(self):
        outer = {"?", ":", "?:", ";", ",", "=", "+=", "-=", "return"}
        for index, token in enumerate(self.tokens):
            if token.text == "if":
                self.condition(index + 2, self.pairs[index + 1] - 1)
            elif token.text == "?":
                self.condition(self.extent(index, -1, outer), index - 1)
            elif token.text == "?:":
                first, last = self.extent(index, -1, outer), self.extent(index, 1, outer)
                self.add(self.tokens[index].begin, self.tokens[last].end, "", "condition")
                self.add(self.tokens[first].begin, self.tokens[index].end, "", "condition")
            elif token.text in ("&&", "||"):
                inner = outer | {"&&", "||"}
                self.condition(self.extent(index, -1, inner), index - 1)
                self.condition(index + 1, self.extent(index, 1, inner))

    def calls(self):
        for index, token in enumerate(self.tokens[:-1]):
            if token.kind != "word" or token.text in KEYWORDS | TYPES or self.tokens[index + 1].text != "(":
                continue
            end = self.pairs[index + 1]
            args, at = [], index + 2
            while at < end:
                last = self.extent(at - 1, 1, {","})
                args.append((at, last))
                at = last + 2
            if token.text in ("min_t", "max_t"):
                self.replace(token, "max_t" if token.text == "min_t" else "min_t", "call")
                for first, last in args[1:]:
                    self.add(token.begin, self.tokens[end].end, f"({self.text(first, last)})", "call")
                continue
            for one, two in zip(args, args[1:]):
                between = self.source[self.tokens[one[1]].end : self.tokens[two[0]].begin]
                new = self.text(*two) + between + self.text(*one)
                self.add(self.tokens[one[0]].begin, self.tokens[two[1]].end, new, "arguments")

    def statements(self):
        index, count = 0, len(self.tokens)
        while index < count:
            token = self.tokens[index]
            if token.text in "{}":
                index += 1
            elif token.text == "else":
                self.replace(token, "", "else")
                index += 1
            elif token.text in ("if", "switch", "while", "for"):
                index = self.pairs[index + 1] + 1
            elif token.text in ("case", "default"):
                while self.tokens[index].text != ":":
                    index += 1
                index += 1
            else:
                last = index
                while self.tokens[last].text != ";":
                    last = self.pairs[last] if self.tokens[last].text in "([{" else last
                    last += 1
                self.statement(index, last)
                index = last + 1

    def statement(self, first, last):
        begin, end = self.tokens[first], self.tokens[last]
        words = [token.text for token in self.tokens[first : last + 1]]
        if begin.text == "return":
            value = self.text(first + 1, last - 1)
            for new in ("0", "1", f"!({value})", f"({value}) + 1", f"({value}) - 1"):
                self.add(self.tokens[first + 1].begin, end.begin, new, "return")
            return
        if begin.text in TYPES:
            if "=" in words:
                self.add(self.tokens[first + words.index("=") + 1].begin, end.begin, "0", "value")
            return
        self.add(begin.begin, end.end, ";", "statement")
        for index in range(first, last):
            if self.tokens[index].text == "." and self.tokens[index - 1].text in "{,":
                stop = self.extent(index, 1, {","})
                self.add(self.tokens[index].begin, self.tokens[stop + 1].begin, "", "member")
                self.add(self.tokens[index + 3].begin, self.tokens[stop].end, "0", "member")


class Trial:
    """Compiles and runs. Every thread has a directory of its own, with files of the same names."""

    def __init__(self, source, work):
        self.source = source
        self.work = work
        self.local = threading.local()
        self.noticed = collections.defaultdict(collections.Counter)    # by function or macro, tests that fail
        self.macros = list(Generator(source).macros)
        self.objects = {}    # by function and bits, the digest of its unchanged object
        tests = work / "tests"
        (tests / "net").mkdir(parents=True)
        self.built = {}    # by variant, objects of the tests and of all functions
        for name, (speed, *flags) in VARIANTS.items():
            self.built[name] = [tests / f"{name}.o", tests / f"{name}-header.o"]
            # GCC inlines no function that another object may replace.
            made = self.compile(source, [speed, *flags, "-fPIC", "-fsemantic-interposition"])
            if not made:
                sys.exit("mutate.py: the header does not compile alone")
            made.rename(self.built[name][1])
            (tests / "net" / "dualpi2.h").write_text(declarations(source))
            self.run([*GCC, "-O1", *flags, "-Iinclude", f"-I{tests}", f"-I{work}", INCLUDES, "-c", "-o",
                      self.built[name][0], "unit.c"], check=True)

    def run(self, command, check=False):
        options = {"cwd": UNIT, "stdin": subprocess.DEVNULL, "text": True, "timeout": TIMEOUT_S}
        return subprocess.run(command, check=check, capture_output=not check, **options)

    def directory(self):
        if not hasattr(self.local, "directory"):
            self.local.directory = Path(tempfile.mkdtemp(dir=self.work))
            (self.local.directory / "net").mkdir()
        return self.local.directory

    def compile(self, source, flags, function=None, macros=()):
        """The header alone: all functions, or this one, for the linker; and the values of macros."""
        at = self.directory()
        (at / "net" / "dualpi2.h").write_text(declarations(source, function) if function else source)
        (at / "header.c").write_text(
            "#include <net/dualpi2_seam.h>\n#define static\n#define inline\n#include <net/dualpi2.h>\n"
            + "".join(f"const u64 value_of_{name} = {name};\n" for name in macros)
        )
        command = [*GCC, *flags, "-Iinclude", f"-I{at}", INCLUDES, "-c", "-o", at / "header.o", at / "header.c"]
        return at / "header.o" if self.run(command).returncode == 0 else None

    def object_of(self, source, function, bits):
        made = self.compile(source, ["-O2", "-fno-ident", bits], function, [] if function else self.macros)
        return made and hashlib.sha256(made.read_bytes()).hexdigest()

    def is_same(self, source, function, bits="-m64"):
        """Whether a change leaves the object as it is; None if it does not compile."""
        if (function, bits) not in self.objects:
            self.objects[function, bits] = self.object_of(self.source, function, bits)
        made = self.object_of(source, function, bits)
        return made and made == self.objects[function, bits]

    def killed_by(self, source, mutant, variant):
        """The name of the test that fails, or '' if none does."""
        at = self.directory()
        _, *flags = VARIANTS[variant]
        if mutant.macro:
            (at / "net" / "dualpi2.h").write_text(source)
            made = self.run([*GCC, "-O1" if flags else "-O0", *flags, "-Iinclude", f"-I{at}", f"-I{self.work}",
                             INCLUDES, "-o", at / "unit", "unit.c", "-lm"])
        else:
            if flags:
                self.compile(source, ["-O1", *flags], mutant.where)
            made = self.run(["gcc", *flags, "-z", "muldefs", "-o", at / "unit", at / "header.o", *self.built[variant],
                             "-lm"])
        if made.returncode:
            raise RuntimeError(made.stderr)
        # All tests take seconds; first the three that noticed most changes of this function.
        for test in [*(name for name, _ in self.noticed[mutant.where].most_common(3)), ""]:
            try:
                ran = self.run([at / "unit", "-x", test])
            except subprocess.TimeoutExpired:
                return "timeout"
            if failed := re.search(r"^not ok \d+ - (\w+)", ran.stdout, re.M):
                self.noticed[mutant.where][failed[1]] += 1
                return failed[1]
            if ran.returncode:
                return f"{variant}, code {ran.returncode}"
        return ""

    def judge(self, mutant):
        source = mutant.apply(self.source)
        function = None if mutant.macro else mutant.where
        same = not mutant.macro and self.is_same(source, function)    # of a macro later: it takes seconds
        if same is None:
            return "invalid", "does not compile"
        try:
            # With the function alone, GCC knows nothing of those that it calls, and may make another object.
            test = not same and self.killed_by(source, mutant, "plain")
            same = same or not test and self.is_same(source, None)
            if same and self.is_same(source, None, "-m32"):
                return "same", "same object"
            test = test or not same and self.killed_by(source, mutant, "sanitized")
            if test := test or self.killed_by(source, mutant, "32-bit"):
                return "killed", test
        except RuntimeError:    # a macro's change does not compile, or an array has more than 2 GB
            return "invalid", "does not compile or link"
        return "survived", ""


def declarations(source, but=None):
    """The header with declarations instead of its functions, except for one."""
    return FUNCTION.sub(
        lambda m: m[0] if m[1] == but else m[0].partition("\n{\n")[0].removeprefix("static inline ") + ";\n", source
    )


def flatten(header):
    """The text of the header with those of its directory that it includes, except for the seam; all their paths; and a
    function from an offset in the text to "file:line".
    """
    text, pieces, paths = [], [], []
    length = 0

    def add(path):
        nonlocal length
        paths.append(path)
        pieces.append((length, path.name, 1))
        for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
            included = INCLUDE.match(line)
            if included and included[1] != "dualpi2_seam.h":
                if path.parent / included[1] not in paths:
                    add(path.parent / included[1])
                pieces.append((length, path.name, number + 1))
            else:
                # Functions are compiled apart from their callers here.
                line = line.replace("static __always_inline", "static inline")
                text.append(line)
                length += len(line)

    add(header)
    whole = "".join(text)

    def place(offset):
        begin, name, line = pieces[bisect.bisect([piece[0] for piece in pieces], offset) - 1]
        return f"{name}:{line + whole.count(chr(10), begin, offset)}"

    return whole, paths, place


def read_equivalents():
    reasons, reason = {}, []
    if not EQUIVALENT.exists():
        return reasons
    fresh = True
    for line in EQUIVALENT.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            fresh = True
        elif line.startswith("\t"):
            reasons[line.strip()] = " ".join(reason)
            fresh = True
        else:
            reason = [line] if fresh else [*reason, line]
            fresh = False
    return reasons


def digest(paths):
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def arguments():
    parser = argparse.ArgumentParser(description="mutation score of the unit tests of the algorithm")
    parser.add_argument("--sample", type=int, help="try only this many, drawn at random")
    parser.add_argument("--seed", type=int, help="seed of the draw (default: from the headers and the tests)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the changes, try none")
    parser.add_argument("--again", action="store_true", help="skip changes that earlier tests detected")
    parser.add_argument("--only", default="", help="only changes with this text in place or description")
    parser.add_argument("--header", type=Path, default=TOP / "include" / "net" / "dualpi2.h")
    parser.add_argument("--at-least", type=float, default=99, help="minimum score, percent; below it this fails")
    return parser.parse_args()


def read_known(kept, key, again):
    """Verdicts of an earlier run on the same headers and tests, by mutant; rewrites the file."""
    known = {}
    if kept.exists():
        first, *lines = kept.read_text().splitlines() or [""]
        rows = [row for row in (line.split("\t") for line in lines) if len(row) == 3]
        if first == key:
            known = {name: (verdict, detail) for verdict, detail, name in rows}
        elif again and first.split()[:2] == key.split()[:2]:
            known = {name: (verdict, detail) for verdict, detail, name in rows if verdict != "survived"}
    kept.write_text("".join([key + "\n", *("\t".join([*verdict, name]) + "\n" for name, verdict in known.items())]))
    return known


def new_trial(source, work):
    """A Trial, after the tests have passed on the unchanged source."""
    subprocess.run(["make", "-s", "generated", f"OUT={work}"], cwd=UNIT, check=True, stdout=subprocess.DEVNULL)
    trial = Trial(source, work)
    for variant in VARIANTS:
        for macro in (True, False):
            trial.is_same(source, None)
            if failed := trial.killed_by(source, Mutant("", 0, 0, "", "", macro), variant):
                sys.exit(f"mutate.py: {failed} fails with the unchanged header; run make check")
    return trial


def judge_all(source, mutants, kept, known, jobs):
    """(verdict, detail) of each mutant; appends new ones to the file, so that an interrupted run continues."""
    work = Path(tempfile.mkdtemp(prefix="mutate.", dir=BUILD))
    lock, done = threading.Lock(), itertools.count(1)

    def one(mutant):
        name = mutant.describe(source)
        if name not in known:
            verdict = trial.judge(mutant)
            with lock:
                known[name] = verdict
                with kept.open("a") as file:
                    file.write("\t".join([*verdict, name]) + "\n")
        number = next(done)
        if number % 100 == 0:
            print(f"mutate.py: {number} of {len(mutants)}", file=sys.stderr, flush=True)
        return known[name]

    try:
        trial = new_trial(source, work)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutants))
    finally:
        shutil.rmtree(work)


def report(args, source, place, mutants, verdicts):
    reasons = read_equivalents()
    by_verdict = {}
    for mutant, (verdict, detail) in zip(mutants, verdicts):
        name = mutant.describe(source)
        if verdict == "survived" and name in reasons:
            verdict, detail = "argued", reasons[name]
        by_verdict.setdefault(verdict, []).append((mutant, name, detail))
    for mutant, name, _ in by_verdict.get("survived", []):
        print(f"survived: {place(mutant.begin)}: {name}")
    # A reason for a change that no longer exists, or that a test detects, is wrong.
    wrong = [name for _, name, _ in by_verdict.get("killed", []) + by_verdict.get("same", []) if name in reasons]
    if not args.sample and not args.only:
        made = {mutant.describe(source) for mutant in mutants}
        wrong += [name for name in reasons if name not in made]
    for name in wrong:
        print(f"{EQUIVALENT.name} has a wrong entry: {name}")

    count = {name: len(by_verdict.get(name, [])) for name in ("killed", "survived", "same", "argued", "invalid")}
    number = count["killed"] + count["survived"]
    score = 100 * count["killed"] / number if number else 0
    print(f"# {len(mutants)} changes: {count['invalid']} do not compile, {count['same']} equivalent by object code, "
          f"{count['argued']} by the reasons in {EQUIVALENT.name}")
    print(f"# killed:{count['killed']} of {number} non-equivalent: {score:.1f} %")
    return 0 if score >= args.at_least and not wrong else 1


def main():
    args = arguments()
    source, headers, place = flatten(args.header)
    tests = [UNIT / "vectors.py", *sorted(UNIT.glob("*.[ch]")), *sorted(UNIT.glob("include/*/*.h"))]
    key = f"# {digest(headers)} {digest([Path(__file__), *tests])}"
    mutants = [m for m in Generator(source).found.values() if args.only in f"{place(m.begin)}: {m.describe(source)}"]
    if args.sample and args.sample < len(mutants):
        mutants = random.Random(key if args.seed is None else args.seed).sample(mutants, args.sample)
    if args.list:
        for mutant in mutants:
            print(f"{mutant.rule}\t{mutant.describe(source)}")
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    kept = BUILD / "mutate.tsv"
    verdicts = judge_all(source, mutants, kept, read_known(kept, key, args.again), args.jobs)
    return report(args, source, place, mutants, verdicts)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
