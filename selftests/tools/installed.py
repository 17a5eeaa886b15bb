# SPDX-License-Identifier: GPL-2.0-only
"""The programs in tools/ as a package installs them in a test machine: in a directory that every user can read, with
the byte code that they never write themselves. On the kernel with sanitizers, compiling the modules of `dualpi2` costs
more than the rest of its start. Elsewhere, the source tree itself.
"""

import compileall
import os
import shutil
import tempfile

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _tools():
    source = os.path.join(ROOT, "tools")
    if "DUALPI2_VM" not in os.environ:
        return source
    place = os.path.join(tempfile.mkdtemp(), "tools")
    os.chmod(os.path.dirname(place), 0o755)
    shutil.copytree(source, place)
    shutil.copy(os.path.join(ROOT, "include/uapi/linux/dualpi2.h"), os.path.join(place, "dualpi2"))
    compileall.compile_dir(place, quiet=1)
    return place


TOOLS = _tools()
