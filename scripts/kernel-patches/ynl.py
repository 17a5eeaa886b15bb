# SPDX-License-Identifier: GPL-2.0-only
"""The netlink specification tc.yaml of a kernel tree with all attributes of dualpi2, from its uapi header."""

import re

INTEGER = re.compile(r"\b([us](?:8|16|32|64))\b")
# Names that the specification of Linux 7.2 has.
NAMES = {"packets-in-c": "pkts-in-c", "packets-in-l": "pkts-in-l", "step-marks": "step-mark"}


def dashed(name):
    """The name of a C identifier in a specification."""
    name = name.lower().replace("_", "-")
    return NAMES.get(name, name)


def quoted(name):
    """A name as YAML 1.1 wants it: some words are truth values."""
    return f"'{name}'" if name in ("on", "off", "yes", "no", "true", "false") else name


def comments(text):
    """The text of a comment, in one line."""
    return " ".join(re.sub(r"^\s*\*", "", line).strip() for line in text.split("\n")).strip()


def row(name, **keys):
    """A list entry of a specification."""
    doc = keys.pop("doc", "")
    lines = [f"      -\n        name: {name}\n"] + [
        f"        {key.replace('_', '-')}: {value}\n" for key, value in keys.items()
    ]
    if doc:
        words = [""]
        for word in doc.split():
            if len(words[-1]) + len(word) > 66:
                words.append("")
            words[-1] += (" " if words[-1] else "") + word
        lines.append("        doc: |\n" + "".join(f"          {line}\n" for line in words))
    return "".join(lines)


class Header:
    """The enums and structs of a uapi header."""

    def __init__(self, text):
        self.text = text
        self.structs = {
            name: re.findall(r"\t__([us]\d+) (\w+)(?:\[(\d+)\])?;(?:\t+/\*((?:[^*]|\*(?!/))*)\*/)?", body)
            for name, body in re.findall(r"^struct (tc_dualpi2_\w+) \{\n(.*?)^\};", text, re.M | re.S)
        }

    def attributes(self, prefix):
        """(name, comment) of each attribute of the enum that begins with PREFIX_UNSPEC; "" for one that is not sent."""
        body = re.search(rf"enum \{{\n\t{prefix}_UNSPEC,\n(.*?)^\}};", self.text, re.M | re.S)[1]
        return [
            (name, comments(comment))
            for name, comment in re.findall(rf"^\t{prefix}_(\w+),(?:[\t ]+/\*((?:[^*]|\*(?!/))*)\*/)?", body, re.M)
        ]

    def constants(self, name):
        """The constants of an enum, without their common begin: (name, value)."""
        body = re.search(rf"enum {name} \{{\n(.*?)^\}};", self.text, re.M | re.S)[1]
        return [(dashed(const), int(value)) for const, value in re.findall(rf"{name.upper()}_(\w+) = (\d+)", body)]

    def enum(self, name, spec):
        """A definition of an enum."""
        constants = self.constants(name)
        start = f"    value-start: {constants[0][1]}\n" if constants[0][1] else ""
        return (
            f"  -\n    name: {spec}\n    type: enum\n{start}"
            f"    entries: [{', '.join(quoted(const) for const, value in constants)}]\n"
        )

    def members(self, struct):
        """The members of a struct as rows; reserved ones as padding."""
        rows = []
        for kind, name, count, comment in self.structs[struct]:
            length = int(kind[1:]) // 8 * int(count or 1)
            if name.startswith(("reserved", "pad")):
                rows.append(row(dashed(name), type="pad", len=length))
            elif count:
                rows.append(row(dashed(name), type="binary", len=length, doc=comments(comment)))
            else:
                rows.append(row(dashed(name), type=kind, doc=comments(comment)))
        return "".join(rows)

    def size(self, struct):
        """Bytes of a struct."""
        return sum(int(kind[1:]) // 8 * int(count or 1) for kind, name, count, comment in self.structs[struct])

    def struct(self, struct, spec):
        """A definition of a struct."""
        return f"  -\n    name: {spec}\n    type: struct\n    members:\n{self.members(struct)}"


def attribute_set(spec, prefix, rows):
    """An attribute set."""
    return (
        f"  -\n    name: {spec}\n    name-prefix: {prefix.lower().replace('_', '-')}-\n    attributes:\n{''.join(rows)}"
    )


class Spec:
    """tc.yaml of one kernel tree."""

    def __init__(self, text, header):
        self.text, self.header = text, Header(header)
        # Before 7.0 the names of all sets begin with "tc-".
        self.prefix = "tc-" if re.search(r"name: tc-drr-attrs$", text, re.M) else ""

    def insert(self, after, text):
        """Put text before the entry that follows the one with the line "after", or before the section's end."""
        start = self.text.index(after) + len(after)
        end = re.compile(r"^(  -|\S.*:|)$", re.M).search(self.text, start + 1).start()
        self.text = self.text[:end] + text + self.text[end:]

    def plain_row(self, name, comment, enums):
        """An attribute that is a number, with the type that its comment begins with."""
        kind = INTEGER.match(comment)[1]
        doc = comment[len(kind) :].lstrip(", ")
        enum = re.match(r"enum (tc_)?(dualpi2_\w+)$", doc)
        if enum:
            enums.append((doc[5:], dashed(enum[2])))
            return row(name, type=kind, enum=dashed(enum[2]))
        return row(name, type=kind, doc=doc)

    def number_rows(self, prefix, enums):
        """The rows of a set of options.  PAD has no place: it is not sent, but has a number."""
        return [
            row(dashed(name), type="pad") if name == "PAD" else self.plain_row(dashed(name), comment, enums)
            for name, comment in self.header.attributes(prefix)
        ]

    def stats_rows(self, prefix, structs):
        """The rows of a set of statistics."""
        rows = []
        for name, comment in self.header.attributes(prefix):
            struct = re.match(r"struct tc_(dualpi2_\w+)", comment)
            listed = re.match(r"nest of struct tc_(dualpi2_\w+), type 1 to \d+", comment)
            if name == "PAD":
                rows.append(row("pad", type="pad"))
            elif struct:
                structs.append(struct[0][7:])
                rows.append(row(dashed(name), type="binary", struct="tc-" + dashed(struct[1])))
            elif listed:
                structs.append("tc_" + listed[1])
                size = f"{{ exact-len: {self.header.size(structs[-1])} }}"
                rows.append(row(dashed(name), type="indexed-array", sub_type="binary", checks=size, doc=comment))
            elif comment.startswith("u64[]"):
                rows.append(row(dashed(name), type="binary", sub_type="u64", doc=comment.split(":", 1)[1].strip()))
            else:
                rows.append(
                    row(
                        dashed(name),
                        type="nest",
                        nested_attributes=self.prefix + "dualpi2-queue-attrs",
                        doc={"C": "Classic queue", "L": "L4S queue"}.get(name, comment),
                    )
                )
        return rows

    def emit(self):
        """The text with dualpi2 in it."""
        enums, structs, sets, attrs = [], [], "", self.prefix + "dualpi2-attrs"
        ext = row("ext", type="nest", value="0x0d50", nested_attributes=self.prefix + "dualpi2-ext-attrs")
        fresh = f"name: {attrs}\n" not in self.text

        def options(kind):
            return f"      -\n        value: {kind}\n        attribute-set: {attrs}\n"

        if fresh:
            rows = self.number_rows("TCA_DUALPI2", enums)
            sets += attribute_set(attrs, "TCA_DUALPI2", rows + [ext])
            self.insert("value: drr\n", options("dualpi2"))
        else:
            self.insert(f"name: {attrs}\n", row("pad", type="pad") + ext)
        self.insert(f"value: dualpi2\n        attribute-set: {attrs}\n", options("dualpi2_mq"))
        sets += attribute_set(
            self.prefix + "dualpi2-ext-attrs", "TCA_DUALPI2_EXT", self.number_rows("TCA_DUALPI2_EXT", enums)
        )
        sets += attribute_set(
            self.prefix + "dualpi2-stats-attrs", "TCA_DUALPI2_STATS", self.stats_rows("TCA_DUALPI2_STATS", structs)
        )
        sets += attribute_set(
            self.prefix + "dualpi2-queue-attrs", "TCA_DUALPI2_QUEUE", self.stats_rows("TCA_DUALPI2_QUEUE", structs)
        )
        self.insert(f"name: {attrs if not fresh else self.prefix + 'drr-attrs'}\n", sets)
        # The generator sizes its tables by the last number.
        self.text = self.text.replace(f"name: {attrs}\n", f"name: {attrs}\n    attr-max-name: tca-dualpi2-ext\n")
        basic, extended = "tc_dualpi2_xstats", "tc_dualpi2_ext_xstats"
        gap = int(re.search(r"#define TC_DUALPI2_EXT_XSTATS_OFFSET\s+(\d+)", self.header.text)[1])
        known = self.header.structs
        if basic not in known:
            raise SystemExit("kernel-patches: the header has no struct tc_dualpi2_xstats")
        members = (
            self.header.members(basic)
            + row("gap", type="pad", len=gap - self.header.size(basic))
            + self.header.members(extended)
        )
        text = "".join(self.header.enum(name, spec) for name, spec in enums)
        text += "".join(self.header.struct(name, "tc-" + dashed(name[3:])) for name in dict.fromkeys(structs))
        text += "  -\n    name: tc-dualpi2-app-xstats\n    type: struct\n    header: linux/dualpi2.h\n"
        text += f"    members:\n{members}"
        self.insert("name: tc-fq-codel-xstats\n" if fresh else "name: tc-dualpi2-xstats\n", text)
        form = f"fixed-header: tc-dualpi2-app-xstats\n        attribute-set: {self.prefix}dualpi2-stats-attrs\n"
        if fresh:
            self.insert("fixed-header: tc-codel-xstats\n", f"      -\n        value: dualpi2\n        {form}")
        else:
            self.text = self.text.replace("fixed-header: tc-dualpi2-xstats\n", form)
        self.insert(f"value: dualpi2\n        {form}", f"      -\n        value: dualpi2_mq\n        {form}")
        return self.text
