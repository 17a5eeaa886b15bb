# SPDX-License-Identifier: GPL-2.0-only
"""Reads the list of options, include/uapi/linux/dualpi2_options.h, which says what a row and its columns are.

    rows(text)      the rows in the order of the header; row.macro is VALUE, CHOICE, WORD ...; row.ext: the row is in
                    DUALPI2_EXT_OPTIONS; columns are strings without their quotes, or None for NULL: row.attr, row.min;
                    the column def is row.default
"""

import re
from types import SimpleNamespace

PATH = "include/uapi/linux/dualpi2_options.h"


def rows(text):
    # The description of a macro has its name and its columns.
    columns = {macro: names.replace("def,", "default,").split(", ")
               for macro, names in re.findall(r"([A-Z]+)\(((?:[a-z]+, )+[a-z]+)\)", text)}
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", "")
    for name, body in re.findall(r"^#define (\w+)\([A-Z, ]+\)(.*)", code, re.M):
        for macro, cells in re.findall(r'([A-Z0-9]+)\(((?:"[^"]*"|[^")])*)\)', body):
            values = [None if cell.strip() == "NULL" else cell.strip().strip('"')
                      for cell in re.findall(r'(?:"[^"]*"|[^",])+', cells)]
            assert len(values) == len(columns[macro]), f"{macro}({cells})"
            yield SimpleNamespace(macro=macro, ext="_EXT_" in name, **dict(zip(columns[macro], values)))
