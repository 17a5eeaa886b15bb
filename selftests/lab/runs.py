# SPDX-License-Identifier: GPL-2.0-only
"""Run dumbbell experiments in test machines, two at a time, with progress.

The programs that say what to run (demo.py, accept.py) stand on this; what
happens in a machine is in dumbbell.py, what is made of it in measure.py.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("DUALPI2_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dualpi2")
BUILD = os.path.join(ROOT, "build")


def shell(command, **kwargs):
    """Output of a command of the project; its failure ends the program."""
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False, **kwargs)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed with code {done.returncode}; its words are above")
    return done.stdout


def prepare(kernel="6.1"):
    """Build what the machines need. Returns paths of module, tc plugin directory and delaymeter."""
    module = shell(["scripts/build-for.sh", kernel, os.path.join(BUILD, kernel)]).strip()
    shell(["make", "--no-print-directory", "plugin"])
    meter = os.path.join(BUILD, "lab", "delaymeter")
    os.makedirs(os.path.dirname(meter), exist_ok=True)
    shell(["cc", "-std=gnu11", "-O2", "-Wall", "-o", meter, "selftests/lab/delaymeter.c"])
    return module, os.path.join(BUILD, "tc"), meter


class Run:
    """One experiment: options of dumbbell.py by name, and where its results are."""

    def __init__(self, name, **options):
        self.name, self.options = name, options
        self.out = tempfile.mkdtemp(prefix=f"{name}-", dir=os.path.join(BUILD, "lab"))
        self.log = os.path.join(self.out, "log")
        self.process = None

    def start(self, built, kernel="6.1"):
        module, plugin, meter = built
        python = os.path.join(CACHE, "venv", "bin", "python")
        command = [os.path.join(ROOT, "scripts", "run-vm.sh"), "--virtual-time", "--kernel", kernel,
                   "--timeout", "1800", "--rw", self.out, "--", "env", f"TC_LIB_DIR={plugin}", python,
                   os.path.join(ROOT, "selftests", "lab", "dumbbell.py"), "--module", module,
                   "--delaymeter", meter, "--out", self.out]
        for key, value in self.options.items():
            command += [f"--{key}", str(value)]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL)

    def progress(self):
        """Share done, 0 to 1."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            found = re.findall(r"^progress (\d+)/(\d+)", log.read(), re.M)
        return int(found[-1][0]) / int(found[-1][1]) if found else 0.0

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def check(self):
        if self.process.returncode:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                words = [w for w in log.read().splitlines() if not w.startswith("progress")]
            sys.exit(f"{self.name}: failed with code {self.process.returncode}:\n" + "\n".join(words[-8:]))


def show(runs, began):
    parts = [f"{r.name} {r.progress():4.0%}" if r.process else f"{r.name}   -" for r in runs]
    line = f"[{time.monotonic() - began:4.0f} s] " + "  ".join(parts)
    print(("\r" + line[:shutil.get_terminal_size().columns - 1]) if sys.stderr.isatty() else line,
          end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def run_all(runs, built, jobs=2):
    """Run them all; an interruption ends the machines under way."""
    began, waiting = time.monotonic(), list(runs)
    shown = 0.0
    try:
        while waiting or any(r.process.poll() is None for r in runs if r.process):
            busy = [r for r in runs if r.process and r.process.poll() is None]
            if waiting and len(busy) < jobs:
                waiting.pop(0).start(built)
                continue
            for done in runs:
                if done.process and done.process.poll() is not None:
                    done.check()
            if time.monotonic() - shown > (1 if sys.stderr.isatty() else 10):
                show(runs, began)
                shown = time.monotonic()
            time.sleep(0.3)
        for run in runs:
            run.check()
        show(runs, began)
        print(file=sys.stderr)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; the machines are stopped")
    finally:
        for run in runs:
            run.stop()
