#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
emit.py - write dualpi2, and TCP Prague where the kernel has Accurate ECN, as series of patches for a kernel tree.

usage: emit.py [--tree DIR] [--out DIR] KERNEL...    KERNEL: 6.12, 7.2; of Debian's linux-source (linux-source.sh)
         --tree DIR  another tree of that version
         --out DIR   (default: build/kernel-patches); the series are in DIR/KERNEL/dualpi2 and DIR/KERNEL/prague

Apply a series with "git am". The patches are signed off by git's identity (user.name, user.email), else by the
packages' maintainer. The sources have no trace of other kernels: include/compat is resolved for the tree.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from expand import Options, bits
from resolve import Compat, defined, probe, replace_calls, unifdef, without_unused
from ynl import Spec

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Where our files go; a directory's headers get a prefix.
MOVES = [
    ("include/qdisc/dualpi2_", "net/sched/dualpi2_"),
    ("include/qdisc/", "net/sched/dualpi2_"),
    ("include/trace/", "include/trace/events/"),
    ("sch_dualpi2.c", "net/sched/sch_dualpi2.c"),
    ("extra/prague/prague.h", "net/ipv4/tcp_prague.h"),
    ("extra/prague/", "net/ipv4/"),
]
INCLUDES = [
    ("<uapi/linux/", "<linux/"),
    ("<qdisc/dualpi2_options.h>", '"dualpi2_attr.h"'),
    (r"<qdisc/(?:dualpi2_)?(\w+\.h)>", r'"dualpi2_\2"'),
    ("<trace/dualpi2.h>", "<trace/events/dualpi2.h>"),
    ('"prague.h"', '"tcp_prague.h"'),
]
# In the uapi header of a tree, for what is generated from the specification.
APP_XSTATS = """/* All of TCA_STATS_APP that is not an attribute. */
struct tc_dualpi2_app_xstats {
	struct tc_dualpi2_xstats basic;
	__u8 gap[TC_DUALPI2_EXT_XSTATS_OFFSET - sizeof(struct tc_dualpi2_xstats)];
	struct tc_dualpi2_ext_xstats ext;
};

"""
TDC = "tools/testing/selftests/tc-testing/tc-tests/qdiscs"
KSELFTEST = "tools/testing/selftests/net/dualpi2"


def read(path):
    """A file's text."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def ours(path):
    """A file of this repository."""
    return read(os.path.join(ROOT, path))


def data(name):
    """A file beside this one."""
    return read(os.path.join(HERE, name))


def place(path):
    """Where one of our files is in a kernel tree."""
    for start, to in MOVES:
        if path.startswith(start):
            return to + path[len(start) :] if start.endswith(("/", "_")) else to
    return path


def messages(kernel):
    """The commit messages, by name."""
    text = data("commits.txt").replace("@KERNEL@", kernel)
    text = text.replace("@VERSION@", re.search(r'DUALPI2_VERSION\s+"(.*)"', ours("sch_dualpi2.c"))[1])
    parts = re.split(r"^=== (\S+)\n", text, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def before(text, anchor, addition):
    """The text with an addition before an anchor."""
    if text.count(anchor) != 1:
        raise SystemExit(f"kernel-patches: {text.count(anchor)} places for {anchor!r} in the tree; expected 1")
    return text.replace(anchor, addition + anchor)


def alloc_obj(args):
    """kzalloc(sizeof(*p), flags) as kzalloc_obj(*p, flags), whose default is GFP_KERNEL; others as they are."""
    size = re.fullmatch(r"sizeof\((\*.*)\)", args[0])
    if not size:
        return "kzalloc", args
    return "kzalloc_obj", [size[1], *(flags for flags in args[1:] if flags != "GFP_KERNEL")]


class Sources:
    """Our sources as they are in a kernel tree."""

    def __init__(self, tree):
        yes, no = probe(tree, ours("include/compat/probes.mk"))
        prague = probe(tree, ours("extra/prague/Kbuild"))
        self.has_accecn = "PRAGUE_HAVE_ACCECN" in prague[0]
        # The patch of the series brings it.
        prague = prague[0] | {"PRAGUE_HAVE_ECT_1_ESTABLISHED"}, prague[1] - {"PRAGUE_HAVE_ECT_1_ESTABLISHED"}
        self.yes = (
            yes
            | prague[0]
            | {"DUALPI2_KERNEL_TREE", "TCA_DUALPI2_MAX", "__KERNEL__"}
            | defined(tree, "MODULE_ALIAS_NET_SCH", "QDISC_PKT_LEN_MAX", "TC_ACT_CONSUMED")
        )
        self.no = no | prague[1] | {"DUALPI2_DEBUG", "DUALPI2_TIME_SHIFT_US"}
        self.options = Options(
            ours("include/uapi/linux/dualpi2_options.h"),
            ours("include/net/dualpi2_options.h"),
            ours("include/qdisc/dualpi2_options.h"),
            ours("include/qdisc/attr.h"),
        )
        # checkpatch.pl wants the new form of an allocation where there is one.
        self.has_alloc_obj = bool(defined(tree, "kzalloc_obj"))
        self.compat = Compat(unifdef(ours("include/compat/compat.h"), self.yes, self.no))

    def get(self, path):
        """The text of one of our files."""
        if path == "include/net/dualpi2_options.h":
            return self.options.header()
        text = unifdef(ours(path), self.yes, self.no)
        if path == "include/qdisc/packet.h":
            text = text.replace("#include <compat/compat.h>\n\n", "\n" + "\n".join(self.compat.kept) + "\n")
            new = (
                set(self.compat.includes)
                - set(re.findall(r"^#include .*$", text, re.M))
                - {"#include <linux/module.h>"}
            )
            text = before(text, "#include <net/inet_ecn.h>\n", "".join(line + "\n" for line in sorted(new)))
        text = text.replace("#include <compat/compat.h>\n", "")
        text = re.sub(r"^.*\b(?:DUALPI2|EXTRA)_VERSION\b.*\n\n?", "", text, flags=re.M)
        text = self.options.apply(self.compat.apply(text))
        if self.has_alloc_obj:
            text = replace_calls(text, "kzalloc", alloc_obj)
        if "/uapi/" in path:
            text = re.sub(r"^\};\n(?=#define)", "};\n\n", text, flags=re.M)
            end = re.search(r"^struct tc_dualpi2_ext_xstats \{.*?^\};\n\n", text, flags=re.M | re.S).end()
            text = text[:end] + APP_XSTATS + text[end:]
        else:
            text = bits(text)
        text = without_unused(text, "dualpi2_aqm_reason")
        for old, new in INCLUDES:
            text = re.sub(rf"^(#include ){old}", rf"\1{new}", text, flags=re.M)
        text = re.sub(r"\binclude/qdisc/(?:dualpi2_)?(\w+\.h)", r"net/sched/dualpi2_\1", text)
        text = re.sub(r"\b_QDISC_(?:DUALPI2_)?(\w+_H)\b", r"_NET_SCHED_DUALPI2_\1", text)
        left = re.search(r"\w*(?:compat_|COMPAT_H|_REASON_OTHER|DUALPI2_HAVE|PRAGUE_HAVE|KERNEL_VERSION)\w*", text)
        if left:
            raise SystemExit(f"kernel-patches: {path} still has {left[0]}")
        return text.rstrip("\n") + "\n"


class Series:
    """One series of patches, made in a repository of the files that it touches."""

    def __init__(self, tree, name, work):
        self.tree, self.name, self.repo = tree, name, os.path.join(work, name)
        os.mkdir(self.repo)
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def git(self, *args):
        """Run git; what it prints."""
        done = subprocess.run(
            ["git", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false", *args],
            cwd=self.repo,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **identity()},
        )
        if done.returncode:
            raise SystemExit(f"kernel-patches: git {args[0]} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def base(self, *paths):
        """Take files of the tree into the first commit, as they are."""
        for path in paths:
            source, target = os.path.join(self.tree, path), os.path.join(self.repo, path)
            if os.path.exists(source):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(source, target)
        self.git("add", "-A")
        self.git("commit", "-q", "--amend", "--allow-empty", "-m", "base")

    def text(self, path):
        """A file as it is now."""
        return read(os.path.join(self.repo, path))

    def write(self, path, text, mode=0o644):
        """Write a file; new ones get an F: line in MAINTAINERS."""
        target = os.path.join(self.repo, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(target, mode)

    def maintain(self, title, *patterns):
        """Add patterns to an entry of MAINTAINERS, which is made if it is not there."""
        text = self.text("MAINTAINERS")
        if f"\n{title}\n" not in text:
            titles = re.findall(r"(?<=\n\n)[^\n]+(?=\n[MLS]:\t)", text)
            after = next(name for name in titles if name > title and name[0] == title[0])
            who = identity()
            text = before(
                text,
                f"\n{after}\n",
                f"\n{title}\nM:\t{who['GIT_AUTHOR_NAME']} <{who['GIT_AUTHOR_EMAIL']}>\n"
                f"L:\tnetdev@vger.kernel.org\nS:\tMaintained\n",
            )
        start = text.index(f"\n{title}\n") + 1
        end = text.index("\n\n", start) + 1
        lines = text[start:end].splitlines()
        files = sorted({line for line in lines if line.startswith("F:")} | {f"F:\t{pattern}" for pattern in patterns})
        entry = [line for line in lines if not line.startswith("F:")] + files
        self.write("MAINTAINERS", text[:start] + "\n".join(entry) + "\n" + text[end:])

    def commit(self, message):
        """Commit what has changed."""
        self.git("add", "-A")
        self.git("commit", "-q", "-s", "-m", message)

    def emit(self, out, cover):
        """Write the patches and the cover letter."""
        target = os.path.join(out, self.name)
        shutil.rmtree(target, ignore_errors=True)
        root = self.git("rev-list", "--max-parents=0", "HEAD")
        self.git("format-patch", "-q", "-B", "-M95%", "--cover-letter", "-o", os.path.abspath(target), root)
        subject, body = cover.split("\n\n", 1)
        letter = glob.glob(os.path.join(target, "0000-*"))[0]
        text = read(letter).replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", body.strip())
        with open(letter, "w", encoding="utf-8") as file:
            file.write(text)
        print(target)


def identity():
    """git's identity, as environment variables; without one, the packages' maintainer."""
    name, mail = re.search(r"^Maintainer: (.*) <(.*)>", ours("packaging/debian/control"), re.M).groups()
    found = subprocess.run(["git", "var", "GIT_AUTHOR_IDENT"], capture_output=True, text=True, check=False).stdout
    who = re.match(r"(.*) <(.*)> \d", found)
    name, mail = who.groups() if who and os.environ.get("DUALPI2_SIGNOFF", "git") == "git" else (name, mail)
    return {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}


def put(series, sources, paths, title, *patterns):
    """Write our files into a series."""
    for path in paths:
        series.write(place(path), sources.get(path))
    series.maintain(title, *(patterns or map(place, paths)))


def headers(pattern):
    """Our headers that match, sorted."""
    return sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, pattern)))


def kconfig(text):
    """net/sched/Kconfig with this dualpi2."""
    text = re.sub(r"^config NET_SCH_DUALPI2\n(?:[\t ].*\n|\n)*", "", text, flags=re.M)
    text = before(text, "menuconfig NET_SCH_DEFAULT\n", data("dualpi2.kconfig"))
    text = before(
        text,
        "\tconfig DEFAULT_SFQ\n",
        '\tconfig DEFAULT_DUALPI2\n\t\tbool "Dual Queue Coupled AQM" if NET_SCH_DUALPI2\n'
        "\t\thelp\n\t\t  New network devices get dualpi2. It keeps the delay low\n"
        "\t\t  where the device itself, or its driver's limit of\n"
        "\t\t  queued bytes, is the bottleneck. Elsewhere it has no\n"
        "\t\t  backlog and no effect.\n\n",
    )
    return before(text, '\tdefault "sfq" if DEFAULT_SFQ\n', '\tdefault "dualpi2" if DEFAULT_DUALPI2\n')


def with_uapi(text, header):
    """<linux/pkt_sched.h> with the options and statistics that it has in Linux 7.x."""
    header = re.sub(r"^\};\n(?=#define)", "};\n\n", header, flags=re.M)
    part = re.search(r"^#ifndef TCA_DUALPI2_MAX\n(.*?)^#endif /\* TCA_DUALPI2_MAX \*/\n", header, re.M | re.S)[1]
    return (
        text[: text.rindex("#endif")]
        + "/* DUALPI2 */"
        + part.rstrip("\n")
        + "\n\n#endif"
        + text[text.rindex("#endif") + 6 :]
    )


def emit_qdisc(tree, sources, work, said):
    """The series of the qdisc."""
    title, uapi = "DUALPI2 QDISC", "include/uapi/linux/dualpi2.h"
    spec, sched = "Documentation/netlink/specs/tc.yaml", "include/uapi/linux/pkt_sched.h"
    series = Series(tree, "dualpi2", work)
    series.base(
        "MAINTAINERS",
        "net/sched/Kconfig",
        "net/sched/Makefile",
        "net/sched/sch_dualpi2.c",
        sched,
        spec,
        "Documentation/networking/index.rst",
        "tools/net/ynl/Makefile.deps",
        "tools/testing/selftests/Makefile",
        f"{TDC}/dualpi2.json",
    )
    if "TCA_DUALPI2_MAX" not in series.text(sched):
        series.write(sched, with_uapi(series.text(sched), ours(uapi)))
    put(series, sources, [uapi], title)
    series.commit(said["dualpi2/uapi"])
    put(series, sources, headers("include/net/dualpi2*.h"), title, "include/net/dualpi2*.h")
    series.commit(said["dualpi2/algorithm"])

    series.write("net/sched/Kconfig", kconfig(series.text("net/sched/Kconfig")))
    make = series.text("net/sched/Makefile")
    if "sch_dualpi2.o" not in make:
        make = before(make, "\nobj-$(CONFIG_NET_CLS_U32)", "obj-$(CONFIG_NET_SCH_DUALPI2)\t+= sch_dualpi2.o\n")
    series.write("net/sched/Makefile", make)
    put(
        series,
        sources,
        # The list of options is expanded where it is used.
        [
            "sch_dualpi2.c",
            "include/trace/dualpi2.h",
            *(path for path in headers("include/qdisc/*.h") if not path.endswith("_options.h")),
        ],
        title,
        "include/trace/events/dualpi2.h",
        "net/sched/dualpi2_*.h",
        "net/sched/sch_dualpi2.c",
    )
    series.commit(said["dualpi2/qdisc"])

    series.write("Documentation/networking/dualpi2.rst", data("dualpi2.rst"))
    index = "Documentation/networking/index.rst"
    series.write(
        index,
        before(series.text(index), "   driver\n", "   dualpi2\n").replace(
            "   dualpi2\n   driver\n", "   driver\n   dualpi2\n"
        ),
    )
    series.maintain(title, "Documentation/networking/dualpi2.rst")
    series.commit(said["dualpi2/documentation"])

    series.write(spec, Spec(series.text(spec), ours(uapi)).emit())
    deps = "tools/net/ynl/Makefile.deps"
    line = "\t$(call get_hdr_inc,__LINUX_PKT_SCHED_H,pkt_sched.h) \\\n"
    text = series.text(deps)
    series.write(deps, text.replace(line, line + "\t$(call get_hdr_inc,_LINUX_DUALPI2_H,dualpi2.h) \\\n"))
    series.commit(said["dualpi2/spec"])
    emit_tests(series, said, title)
    return series


def emit_tests(series, said, title):
    """The kselftest, and the cases of tc-testing."""
    source = os.path.join(ROOT, "selftests/kselftest/net/dualpi2")
    for name in sorted(entry.name for entry in os.scandir(source) if entry.is_file()):  # not __pycache__
        path = os.path.join(source, name)
        series.write(f"{KSELFTEST}/{name}", read(path), os.stat(path).st_mode & 0o777)
    make = "tools/testing/selftests/Makefile"
    series.write(make, before(series.text(make), "TARGETS += net/forwarding\n", "TARGETS += net/dualpi2\n"))
    series.maintain(title, KSELFTEST + "/")
    series.commit(said["dualpi2/kselftest"])
    cases = tempfile.mkdtemp(dir=os.path.dirname(series.repo))
    subprocess.run(
        [sys.executable, os.path.join(ROOT, "selftests/tdc/cases.py"), cases], check=True, stdout=subprocess.DEVNULL
    )
    # The other cases need a tc with all options.
    series.write(f"{TDC}/dualpi2.json", read(os.path.join(cases, "dualpi2.json")).rstrip("\n") + "\n")
    series.maintain(title, f"{TDC}/dualpi2.json")
    series.commit(said["dualpi2/tdc"])


def emit_prague(tree, sources, work, said):
    """The series of TCP Prague."""
    series = Series(tree, "prague", work)
    series.base("MAINTAINERS", "net/ipv4/Kconfig", "net/ipv4/Makefile", "net/ipv4/tcp_output.c", "include/net/tcp.h")
    for patch in sorted(glob.glob(os.path.join(ROOT, "extra/prague/kernel-patch/0*.patch"))):
        subprocess.run(["patch", "-s", "-p1", "--no-backup-if-mismatch", "-i", patch], cwd=series.repo, check=True)
        message = re.search(r"^Subject: \[PATCH\] (.*?)\n---\n", read(patch), re.M | re.S)[1]
        series.commit(message)
    kconf = series.text("net/ipv4/Kconfig")
    kconf = before(kconf, "config TCP_CONG_CDG\n", data("prague.kconfig"))
    series.write("net/ipv4/Kconfig", kconf)
    make, line = series.text("net/ipv4/Makefile"), "obj-$(CONFIG_TCP_CONG_DCTCP) += tcp_dctcp.o\n"
    series.write("net/ipv4/Makefile", before(make, line, "obj-$(CONFIG_TCP_CONG_PRAGUE) += tcp_prague.o\n"))
    put(
        series,
        sources,
        ["extra/prague/tcp_prague.c", "extra/prague/prague.h"],
        "TCP PRAGUE",
        "net/ipv4/tcp_prague.[ch]",
    )
    series.commit(said["prague/prague"])
    return series


def main():
    """Write the series of each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/kernel-patches"))
    parser.add_argument("kernels", metavar="KERNEL", nargs="+")
    args = parser.parse_args()
    if not shutil.which("unifdef"):
        raise SystemExit("kernel-patches: unifdef is missing; run scripts/setup.sh --tests")
    for kernel in args.kernels:
        tree = (
            args.tree
            or subprocess.run(
                [os.path.join(ROOT, "scripts/linux-source.sh"), kernel], check=True, stdout=subprocess.PIPE, text=True
            ).stdout.strip()
        )
        sources, said = Sources(tree), messages(kernel)
        with tempfile.TemporaryDirectory(prefix="kernel-patches-") as work:
            emit_qdisc(tree, sources, work, said).emit(os.path.join(args.out, kernel), said["dualpi2/cover"])
            if sources.has_accecn:
                emit_prague(tree, sources, work, said).emit(os.path.join(args.out, kernel), said["prague/cover"])
            else:
                print(
                    f"kernel-patches: no series of TCP Prague, as Linux {kernel} has no Accurate ECN for it",
                    file=sys.stderr,
                )


if __name__ == "__main__":
    main()
