# SPDX-License-Identifier: GPL-2.0-only
"""Resolve the sources for one kernel tree: probe its headers, remove #ifdefs, and put the compat functions in place."""

import glob
import os
import re
import subprocess

PROBE = re.compile(r"\$\(call (\w+)-have,([^,]+),(.+),(\w+)\)\)?$", re.M)
FUNCTION = re.compile(
    r"(?:/\*(?:[^*]|\*(?!/))*\*/\n)?static inline [\w *]+?[\n ]\*?(\w+)\(([^)]*)\)\n\{\n((?:.*\n)*?)\}\n\n?"
)
LINE = 80


def probe(tree, text):
    """The names of the probes in a .mk file that match, and those that do not."""
    yes, no = set(), set()
    for prefix, path, pattern, name in PROBE.findall(text):
        files = glob.glob(os.path.join(tree, "include", path))
        hit = bool(files) and not subprocess.run(["grep", "-qE", pattern, *files], check=False).returncode
        (yes if hit else no).add(f"{prefix.upper()}_HAVE_{name}")
    return yes, no - yes


def defined(tree, *names):
    """Those of some macros that the tree's headers define."""
    return {
        name
        for name in names
        if not subprocess.run(
            ["grep", "-rqE", rf"^\s*#\s*define\s+{name}\b", os.path.join(tree, "include")], check=False
        ).returncode
    }


def unifdef(text, yes, no):
    """The text without the conditionals on these names."""
    done = subprocess.run(
        ["unifdef", *("-D" + name for name in sorted(yes)), *("-U" + name for name in sorted(no))],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise SystemExit(f"kernel-patches: unifdef failed: {done.stderr.strip()}")
    # What stood around a conditional leaves two blank lines.
    return re.sub(r"\n{3,}", "\n\n", done.stdout)


def close_of(text, start):
    """The index of the parenthesis that closes the one at start."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index
    raise SystemExit("kernel-patches: a call has no end")


def arguments(text):
    """The arguments of a call, white space as single blanks."""
    found, depth, begin = [], 0, 0
    text = " ".join(text.split())
    for index, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(text[begin:index].strip())
            begin = index + 1
    return found + [text[begin:].strip()]


def wrap(head, args, tail):
    """A call with its arguments aligned to the parenthesis that ends head, the begin of its line."""
    column = len(head.expandtabs(8))
    align = "\t" * (column // 8) + " " * (column % 8)
    lines, used = [head], column
    words = []
    for number, arg in enumerate(args):
        end = "," if number + 1 < len(args) else tail
        pieces = [arg + end] if len(arg) < LINE - column else re.sub(r" ([?:]) ", r" \1\n", arg + end).split("\n")
        words += pieces
    for word in words:
        fresh = lines[-1].endswith(("(", "\t", align)) and used == column
        if not fresh and used + 1 + len(word) > LINE:
            lines.append(align)
            used, fresh = column, True
        lines[-1] += word if fresh else " " + word
        used += len(word) + (0 if fresh else 1)
    return "\n".join(lines)


def replace_calls(text, name, new):
    """Each call name(...) as new(arguments) has it: (function, arguments), or None for nothing."""
    position = 0
    while True:
        match = re.compile(rf"\b{name}\(").search(text, position)
        if not match:
            return text
        close = close_of(text, match.end() - 1)
        begin = text.rfind("\n", 0, match.start()) + 1
        changed = new(arguments(text[match.end() : close]))
        if changed is None:
            end = text.index(";", close) + 1
            text = text[:begin] + text[end:].lstrip("\n")
            continue
        head = text[begin : match.start()] + changed[0] + "("
        tail = ");" if text[close + 1] == ";" else ")"
        body = wrap(head, changed[1], tail)
        text = text[:begin] + body + text[close + len(tail) :]
        position = begin + len(body)


def call_of(statement):
    """(function, arguments) of a statement that is one call."""
    match = re.fullmatch(r"(?:return )?(\w+)\((.*)\);", statement, re.S)
    return match and (match[1], arguments(match[2]))


class Compat:
    """What include/compat/compat.h is for one kernel."""

    def __init__(self, text):
        self.inline, self.kept = {}, []
        self.names = dict(re.findall(r"^#define (dualpi2_compat_\w+|DUALPI2_REASON_\w+)\s+(\w+)$", text, re.M))
        self.includes = sorted(re.findall(r"^#include <.*>$", text, re.M))
        for match in FUNCTION.finditer(text):
            name, params, body = match[1], [arg.split()[-1].lstrip("*") for arg in arguments(match[2])], match[3]
            statement = " ".join(body.split())
            if body.strip() and (statement.count(";") > 1 or "{" in statement):
                self.kept.append(match[0].rstrip() + "\n")
            else:
                self.inline[name] = (params, statement)

    def body_of(self, name):
        """What stands in place of a call of an inline function, as a function of its arguments."""
        params, statement = self.inline[name]

        def new(args):
            if not statement:
                return None
            values = dict(zip(params, args))
            call = call_of(statement)
            if call is None:  # an assignment
                return None
            return call[0], [re.sub(r"\w+", lambda word: values.get(word[0], word[0]), arg) for arg in call[1]]

        return new

    def apply(self, text):
        """The text without compat functions."""
        for name, (params, statement) in self.inline.items():
            if statement and call_of(statement) is None:
                text = re.sub(rf"\b{name}\(({', '.join(params)})\);", statement, text)
            text = replace_calls(text, name, self.body_of(name))
        for name, value in self.names.items():
            text = re.sub(rf"\b{name}\b", value, text)
        for name in sorted(set(re.findall(r"\bdualpi2_compat_\w+(?=\()", text))):
            text = replace_calls(text, name, lambda args, name=name: (name.replace("compat_", ""), args))
        return text


def without_unused(text, name):
    """The text without a static function, or an enum, of which only the definition is left."""
    if len(re.findall(rf"\b{name}\b", text)) != 1:
        return text
    return re.sub(rf"(?:/\*(?:[^*]|\*(?!/))*\*/\n)?static [^;{{}}]*\b{name}\([^)]*\)\n\{{\n(?:.*\n)*?\}}\n\n", "", text)
