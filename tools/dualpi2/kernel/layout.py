# SPDX-License-Identifier: GPL-2.0-only
"""Layouts of structs and numbers of attributes, parsed from a C header.

    HEADER.number("TCA_DUALPI2_EXT")    a constant, or an expression of constants
    HEADER.string("DUALPI2_GENL_NAME")  a constant that is a string
    HEADER.layout("tc_dualpi2_delay")   a struct, see Layout
    HEADER.attributes("TCA_DUALPI2_")   {name: (type, struct format)} of the attributes with a single number

HEADER is include/uapi/linux/dualpi2.h. Packages install a copy of the header in the directory of this package.
"""

from __future__ import annotations

import bisect
import os
import re
import struct

_FORMATS = {"u8": "B", "u16": "H", "u32": "I", "s32": "i", "u64": "Q"}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Layout:
    """A struct; fields of nested structs and arrays are named "c.enqueued" or "codepoint.0.arrived"."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.fields = fields
        self.names = tuple(name for name, _ in fields)
        self.format = "=" + "".join(form for _, form in fields)
        self.size = struct.calcsize(self.format)
        self._ends = [struct.calcsize(self.format[:n + 2]) for n in range(len(fields))]
        # The compiler would insert padding, which the format lacks.
        if struct.calcsize("@" + self.format[1:] + ("0Q" if "Q" in self.format else "0I")) != self.size:
            raise ValueError(f"unaligned fields: {fields}")

    def read(self, data: bytes) -> dict[str, int]:
        """{name: value}. The struct of the kernel may be longer or shorter; missing fields are 0."""
        return dict(zip(self.names, struct.unpack(self.format, data[:self.size].ljust(self.size, b"\0"))))

    def read_present(self, data: bytes) -> dict[str, int]:
        """{name: value} of the complete fields in data, without "pad"."""
        present = bisect.bisect_right(self._ends, len(data))
        found = dict(zip(self.names, struct.unpack_from(self.format[:present + 1], data)))
        found.pop("pad", None)
        return found

    def write(self, values: dict[str, int]) -> bytes:
        """The struct as bytes; fields not in values are 0."""
        unknown = set(values) - set(self.names)
        assert not unknown, f"the struct has no {unknown}"
        return struct.pack(self.format, *[values.get(name, 0) for name in self.names])


class Header:
    """Constants, structs and attributes of C headers; only the syntax that this project uses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.defines: dict[str, str] = dict(re.findall(r"^#define\s+(\w+)[ \t]+(.*\S)", self.code, re.M))
        self.numbers = {"true": 1, "false": 0, "U32_MAX": 2**32 - 1, "U64_MAX": 2**64 - 1}
        for body in re.findall(r"^enum[^{;]*\{(.*?)\}", self.code, re.M | re.S):
            value = -1
            for item in filter(None, map(str.strip, body.split(","))):
                name, _, given = map(str.strip, item.partition("="))
                value = self.number(given) if given else value + 1
                self.numbers[name] = value

    def number(self, text: str) -> int:
        """The value of an expression of constants in C."""
        def value(name: re.Match[str]) -> str:
            return str(self.numbers[name[0]] if name[0] in self.numbers else self.number(self.defines[name[0]]))

        text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[UL]+\b", r"\1", text)
        text = re.sub(r"\b[A-Za-z_]\w*", value, text)
        return int(eval(text.replace("/", "//"), {"__builtins__": {}}))

    def string(self, name: str) -> str:
        """The value of a constant that is a string."""
        return self.defines[name].strip('"')

    def layout(self, name: str) -> Layout:
        """A struct."""
        return Layout(self._fields(name))

    def _fields(self, name: str) -> list[tuple[str, str]]:
        body = re.search(r"struct " + name + r" \{(.*?)\n\};", self.code, re.S)
        if body is None:
            raise KeyError(f"struct {name}")
        found = []
        for kind, field, count in re.findall(r"((?:struct )?\w+)\s+(\w+)(?:\[(\w+)\])?;", body[1]):
            for place in [f"{field}.{n}" for n in range(self.number(count))] if count else [field]:
                if kind.startswith("struct "):
                    found += [(f"{place}.{inner}", form) for inner, form in self._fields(kind[7:])]
                else:
                    found.append((place, _FORMATS[kind.strip("_")]))
        return found

    def attributes(self, prefix: str) -> dict[str, tuple[int, str]]:
        """{name: (type, struct format)} of attributes whose comments begin with an integer type."""
        body = re.search(rf"\b{prefix}UNSPEC,(.*?)__{prefix}MAX", self.text, re.S)
        if body is None:
            raise KeyError(prefix)
        return {name.lower(): (self.numbers[prefix + name], _FORMATS[kind])
                for name, kind in re.findall(rf"\b{prefix}(\w+),\s*/\* ([us]\d+)[, ]", body[1])}


def _header() -> Header:
    for path in ("dualpi2.h", "../../include/uapi/linux/dualpi2.h"):
        try:
            with open(os.path.join(_PACKAGE, path), encoding="utf-8") as file:
                return Header(file.read())
        except FileNotFoundError:
            continue
    raise ImportError(f"{_PACKAGE}/dualpi2.h is missing")


HEADER = _header()
