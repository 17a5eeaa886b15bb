#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check the documents, for scripts/style.sh; prints one line for each finding.

usage: prose.py links      links and mentioned pages: the file and the heading exist
       prose.py installed DIR   the same links in a directory with the pages as a package installs them
       prose.py contents   a page with more than five sections links to each of them
       prose.py shell      shellcheck of the blocks ```sh and ```bash
       prose.py words      docs/style/glossary.yml: documents, manuals, strings and comments of the tools, of tc
                           and of the module, descriptions of packages, dashboard
       prose.py count      findings of "words" by area, exceptions included
"""

import collections
import glob
import io
import os
import re
import subprocess
import sys
import tempfile
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
GLOSSARY = "docs/style/glossary.yml"
# Area: files whose words are checked; each file counts in the first area that has it.
AREAS = {
    "README": ("README.md",),
    "guides": ("docs/guides/*.md",),
    "docs": ("docs/*.md", "packaging/openwrt/*.md"),
    "manuals": ("*.8",),
    "tools": ("tools/*",),
    "tc": ("iproute2-patch/tc/*.[ch]", "extra/*/q_*.c", "include/uapi/linux/dualpi2_options.h"),
    "module": ("sch_dualpi2.c", "include/*"),
    "packages": ("packaging/debian/control", "packaging/rpm/*.spec", "packaging/openwrt/*/Makefile",
                 "extra/debian/control"),
}
# Not judged yet: files whose rewriting is under way, and pages that are still to come.
WORDS_NOT_YET = set()
CONTENTS_NOT_YET = set()
LINKS_NOT_YET = set()


def files(*patterns):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split()
    return sorted(name for name in names if os.path.isfile(os.path.join(ROOT, name)))


def read(name, root=ROOT):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def blanked(pattern, text, flags=0):
    """The text with what matches replaced by blanks, so that line numbers and columns stay."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=flags)


def without_blocks(text):
    return blanked(r"^ *```.*?^ *```$|<!--.*?-->", text, re.M | re.S)


def headings(text):
    """Anchors of a page, as GitHub makes them, and the titles of its sections."""
    anchors, sections, seen = set(), [], collections.Counter()
    for match in re.finditer(r"^(#+) +(.+?) *$", without_blocks(text), re.M):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match[2])
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
        if match[1] == "##":
            sections.append((text.count("\n", 0, match.start()) + 1, match[2], anchor))
    return anchors, sections


def broken(names, root):
    for name in names:
        text = without_blocks(read(name, root))
        for match in re.finditer(r"\[[^]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"", blanked(r"`[^`\n]*`", text)):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if path in LINKS_NOT_YET:
                continue
            if not os.path.exists(os.path.join(root, path)):
                yield f"{place}: {target}: no such file"
            elif anchor and anchor not in headings(read(path, root))[0]:
                yield f"{place}: {target}: {path} has no such heading"


def links():
    yield from broken(files("*.md"), ROOT)
    for name in files():
        try:
            text = read(name)
        except UnicodeDecodeError:
            continue
        for match in re.finditer(r"\bdocs/[\w/-]+\.md\b", text):
            if match[0] not in LINKS_NOT_YET and not os.path.exists(os.path.join(ROOT, match[0])):
                yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}: no such file"


def contents():
    for name in files("docs/*.md"):
        text = read(name)
        sections = headings(text)[1]
        # A list of releases is its own contents.
        if len(sections) <= 5 or name in CONTENTS_NOT_YET or name == "docs/CHANGELOG.md":
            continue
        for line, title, anchor in sections:
            if f"(#{anchor})" not in text and title.lower() != "contents":
                yield f"{name}:{line}: no link to the section '{title}' in the contents"


def shell():
    # One file for each page and dialect, with each block on its own lines, so that shellcheck's line numbers hold.
    with tempfile.TemporaryDirectory() as directory:
        scripts = collections.defaultdict(list)
        for name in files("*.md"):
            text = read(name)
            for match in re.finditer(r"^( *)```(sh|bash)\n(.*?)^ *```$", text, re.M | re.S):
                path = os.path.join(directory, f"{name.replace('/', '+')}.{match[2]}")
                first = text.count("\n", 0, match.start(3))
                with open(path, "a+", encoding="utf-8") as file:
                    file.seek(0)
                    file.write("\n" * (first - file.read().count("\n")) + match[3])
                if path not in scripts[match[2]]:
                    scripts[match[2]].append(path)
        for dialect, paths in scripts.items():
            # SC2046, SC2086: readers paste these lines, and quotes would hide the commands.
            # SC2034, SC2164: a fragment need not use its variables, or check cd.
            left_out = "SC2034,SC2046,SC2086,SC2164"
            found = subprocess.run(["shellcheck", "--norc", "-f", "gcc", "-s", dialect, "-e", left_out, *paths],
                                   capture_output=True, text=True, check=False).stdout
            for line in found.splitlines():
                place, _, rest = line.removeprefix(directory + "/").partition(":")
                yield f"{place.rpartition('.')[0].replace('+', '/')}:{rest}"


def rules():
    """(pattern, what to write) of the glossary; the file is Vale's, and of YAML only "'key': value" is needed."""
    found = []
    for line in read(GLOSSARY).partition("\nswap:\n")[2].splitlines():
        match = re.fullmatch(r"""  (['"])(.*)\1: (.*)""", line)
        if not match:
            sys.exit(f"prose.py: {GLOSSARY}: not a line \"  'pattern': replacement\": {line}")
        # A phrase may go on in the next line, also of a comment.
        phrase = match[2].replace(" ", r"(?:[ ]|[ ]*\n[ \t*#/]*)")
        found.append((re.compile(rf"(?<![\w-])(?:{phrase})(?![\w-])", re.I), match[3]))
    return found


def of_python(text):
    """Comments and strings alone, at their places."""
    lines = [" " * len(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] not in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            continue
        row, column = token.start
        for offset, part in enumerate(token.string.split("\n")):
            at = column if not offset else 0
            old = lines[row - 1 + offset]
            lines[row - 1 + offset] = old[:at] + part + old[at + len(part):]
    return "\n".join(lines)


def of_c(text):
    """Comments and strings alone, at their places."""
    kept = [" " if c != "\n" else c for c in text]
    for match in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', text, re.S):
        kept[match.start():match.end()] = match[0]
    return "".join(kept)


def prose(name):
    """What of a file is prose; code and names are blanks."""
    text = read(name)
    if name.endswith(".md"):
        text = without_blocks(text)
    elif name.endswith(".8"):
        # Names and literals are set in bold and by \(dq.
        text = re.sub(r"\\f[BI][^\\]*\\f[RP]", lambda match: " " * len(match[0]), text).replace("\\-", "-")
    elif name.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        text = of_python(text)
    elif name.endswith((".c", ".h")):
        text = of_c(text)
    return blanked(r"`[^`\n]*`|\"[\w-]+\"|'[\w-]+'", text)


def words(exceptions=WORDS_NOT_YET):
    seen = set()
    for area, patterns in AREAS.items():
        for name in files(*patterns):
            if name in exceptions or name in seen:
                continue
            seen.add(name)
            text = prose(name)
            for pattern, use in rules():
                for match in pattern.finditer(text):
                    phrase = " ".join(match[0].split())
                    yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase} -> {use}", area


def main():
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if sys.argv[1:2] == ["installed"] and len(sys.argv) == 3:
        names = glob.glob("**/*.md", root_dir=sys.argv[2], recursive=True)
        found = [*broken(names, sys.argv[2]), *([] if len(names) > 20 else [f"only {len(names)} pages"])]
        sys.exit("\n".join(found) or None)
    if verb == "count":
        number = collections.Counter(area for _, area in words(()))
        for area in AREAS:
            print(f"{area:10} {number[area]:5}")
    elif verb == "words":
        for line, _ in words():
            print(line)
    elif verb in ("links", "contents", "shell"):
        for line in globals()[verb]():
            print(line)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
