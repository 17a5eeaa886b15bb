# SPDX-License-Identifier: GPL-2.0-only
"""Plain C in place of the list of options: bounds, defaults and tables of attributes."""

import re
import subprocess

from resolve import arguments, close_of


def preprocess(text):
    """The text with its macros expanded."""
    return subprocess.run(
        ["cpp", "-P", "-undef", "-nostdinc"],
        input=re.sub(r"^#include.*$", "", text, flags=re.M),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def number(text):
    """A constant with the suffix that it needs."""
    value = re.fullmatch(r"(-?\d+)LL", text)
    return value[1] if value and -1 << 31 <= int(value[1]) < 1 << 31 else text


def bits(text):
    """Powers of two as checkpatch wants them in definitions; BIT() is a long, which 1U is not."""
    text = re.sub(r"\b1ULL << (\w+)", r"BIT_ULL(\1)", text)
    return re.sub(r"^(#define\s+\w+\s+)\(1U << (\w+)\)", r"\1((u32)BIT(\2))", text, flags=re.M)


def spec_row(attr, body):
    """A row of a table of attributes."""
    lines = [f"\t[{attr}] = {{"]
    for field in arguments(body):
        if not field:
            continue
        name, value = (part.strip() for part in field.split("=", 1))
        while value.startswith("(") and close_of(value, 0) == len(value) - 1:
            value = value[1:-1]
        size = re.fullmatch(r"sizeof\(\(\((.*) \*\)0\)->(\w+)\)", value)
        value = f"sizeof_field({size[1]}, {size[2]})" if size else value
        value = re.sub(r'" "', "", value) if value.startswith('"') else number(value)
        if value == "DUALPI2_ZERO_ALLOWED" or value == "DUALPI2_ZERO_KEYWORD":
            value = "true"
        if (name, value) in ((".range", "NULL"), (".min", "0"), (".or_zero", "false")) or value.startswith(
            "DUALPI2_ZERO_"
        ):
            continue
        fits = len(name) + len(value) < 80
        lines.append(f"\t\t{name} = {value}," if fits else f"\t\t{name} =\n\t\t\t{value},")
    return "\n".join(lines + ["\t},"])


class Options:
    """The list of options, expanded."""

    def __init__(self, listed, bounds, tables, attr):
        enums = preprocess(f"{listed}\n{bounds}\nDUALPI2_DEFAULTS()\n")
        self.bounds = re.findall(r"enum \{ (\w+) = (.*?) \};", enums)
        self.defaults = re.findall(r"(\.\w+) = \((.*?)\),", enums)
        macros = "".join(re.findall(r"^#define DUALPI2_ATTR_SPEC(?:_TEXT)?\((?:.*\\\n)+.*\n", attr, re.M))
        plain = f"{listed}\n#define DUALPI2_NO_ROW(...)\n{macros}\n{tables}\n"
        self.tables = {
            name: "\n".join(
                spec_row(*row)
                for row in re.findall(r"\[(\w+)\] = \{(.*?)\},", preprocess(plain + name).replace("\n", " "))
            )
            for name in ("DUALPI2_ATTR_SPECS", "DUALPI2_EXT_ATTR_SPECS")
        }

    def apply(self, text):
        """The text without uses of the list."""
        for name, rows in self.tables.items():
            text = re.sub(rf"^\t{name}$", lambda match, rows=rows: rows, text, flags=re.M)
        text = text.replace(
            "\t*cfg = (struct dualpi2_config) { DUALPI2_DEFAULTS() };\n",
            "\t*cfg = (struct dualpi2_config) {\n"
            + "".join(f"\t\t{member} = {bits(value)},\n" for member, value in self.defaults)
            + "\t};\n",
        )
        return re.sub(
            r"^(?:/\*(?:[^*]|\*(?!/))*\*/\n)?#define DUALPI2_ATTR_SPEC(?:_TEXT)?\((?:.*\\\n)+.*\n\n?",
            "",
            text,
            flags=re.M,
        )

    def header(self):
        """include/net/dualpi2_options.h."""
        return (
            # In one piece, reuse would read it as this file's.
            "/* SPDX-License-" + "Identifier: GPL-2.0-only */\n/*\n"
            " * Ranges and defaults of the options, in the units of the attributes.\n */\n"
            "#ifndef _NET_DUALPI2_OPTIONS_H\n#define _NET_DUALPI2_OPTIONS_H\n\n"
            "#include <linux/bits.h>\n\n"
            "/* One enum each, so that none has a wider type than necessary. */\n"
            + "".join(f"enum {{ {name} = {bits(number(value.strip('()')))} }};\n" for name, value in self.bounds)
            + "\n#endif /* _NET_DUALPI2_OPTIONS_H */\n"
        )
