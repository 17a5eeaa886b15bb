# SPDX-License-Identifier: GPL-2.0-only
"""Run dumbbell experiments in test machines, two at a time, with progress.

The programs that say what to run (demo.py, accept.py, lab.py) stand on this; what
happens in a machine is in dumbbell.py, what is made of it in measure.py.
"""

import ast
import collections
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import store
from job import uses_udp_prague
from scenario import COMPANIONS, FRAME, TIME_SHIFT, mbit_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
MODULES = os.path.join(BUILD, "in-lab")  # the lab's own: suites load those of scripts/run while these are built
LAB = os.path.join(ROOT, "selftests", "lab")
# Of the lab; that of make demo and make accept is prepare()'s. A test of the lab takes the one that is built anyway.
KERNEL = os.environ.get("DUALPI2_LAB_KERNEL", "plain")
MACHINE_MEMORY = "3G"  # of the lab; what it does not touch it does not take
# What makes figures of packets, beside the delaymeter: a run made with others is not what would be made today.
METHOD = ("selftests/lab/dumbbell.py", "selftests/lab/job.py", "selftests/lab/traffic.py", "selftests/lab/measure.py",
          "selftests/net/lib.py", "selftests/lib/netlink.py", "tools/dualpi2/kernel/netlink.py",
          "tools/dualpi2/kernel/stats.py", "selftests/debug/uml-seed.c", "selftests/debug/uml-repeat.patch",
          "scripts/run-vm.sh", "scripts/vm/init.sh", "iproute2-patch/tc/q_dualpi2.c",
          "iproute2-patch/tc/q_dualpi2_stats.h")
AGAIN = "build/lab/again"  # where a run's own command repeats it: where it stands it is finished
# Of the module that stands for scenario.TIME_SHIFT: RFC 9332 2.5.1 and the DualPI2 paper's III-C have 50 ms.
TIME_SHIFT_US = 50000
COMPANION_QDISCS = ("pi2", "csaqm", "vdq_csaqm", "ppv")
# Stand-ins for tests: a program in place of run-vm.sh, and one in place of `measure.py reduce`.
MACHINE = os.environ.get("DUALPI2_LAB_MACHINE") or os.path.join(ROOT, "scripts", "run-vm.sh")
REDUCE = os.environ.get("DUALPI2_LAB_REDUCE")

# The planner's first guess, measured with a machine on each core: seconds for its start and end, for a packet through
# the bottleneck with its ACK and its evaluation, for a web object's connection. Finished runs correct it.
START_S, PACKET_S, OBJECT_S = 5, 11e-6, 0.8e-3
# A packet's two sightings of 24 bytes each; what a machine takes beside them, and how many times them the evaluation
# takes (measured: 650 MB for 200 MB).
RAW_BYTES, MACHINE_BYTES, EVALUATION = 48, 512 << 20, 4
# A machine may take this many times what the plan says, and no less than the second figure (seconds). udp_prague takes
# a system call or two for each packet, and ten times as long as TCP.
PATIENCE, LEAST_LIMIT_S = 40, 600
# For run-vm.sh to end its machine by itself: beyond the limit, and after being asked to (seconds).
GRACE_S, STOP_S = 30, 10


def shell(command, **kwargs):
    """Output of a command of the project; its failure ends the program."""
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False, **kwargs)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed with code {done.returncode}; its words are above")
    return done.stdout


def prepare(kernel="6.1"):
    """Build what the machines need. Returns paths of module, tc plugin directory and delaymeter."""
    module = shell(["scripts/build-for.sh", kernel, os.path.join(MODULES, kernel)]).strip()
    shell(["make", "--no-print-directory", "plugin"])
    meter = os.path.join(BUILD, "lab", "delaymeter")
    os.makedirs(os.path.dirname(meter), exist_ok=True)
    shell(["cc", "-std=gnu11", "-O2", "-Wall", "-o", meter, "selftests/lab/delaymeter.c"])
    return module, os.path.join(BUILD, "tc"), meter


def executed(source):
    """What a Python program executes: its syntax tree as text, without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def digest(*paths):
    """A hash of files' contents; of Python only what is executed, so that comments and docstrings do not count."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        found.update(executed(data).encode() if path.endswith(".py") else data)
    return found.hexdigest()[:16]


class Bench:
    """What all runs of the lab have in common, and by what their results are known to be of today."""

    def __init__(self, companions=False, udp_prague=False, time_shift=False):
        """Build it, and the lab's kernel at the first time; a failure ends the program.

        companions: with what is in extra, which the jobs that of_companions() tells need, and no other.
        udp_prague: with these programs, which the jobs that uses_udp_prague() tells need.
        time_shift: with this module, which the jobs that is_time_shifted() tells need.
        """
        self.extra, self.companions, self.udp_prague = None, {}, None
        self.shifted, self.shifted_module = None, None
        if "DUALPI2_LAB_MACHINE" in os.environ:
            self.built, self.in_tree, self.kernel, self.module = (MACHINE,) * 3, MACHINE, "none", "none"
            self.prague, self.prague_module = MACHINE, "none"
            self.extra, self.companions = self.built, dict.fromkeys(COMPANIONS, "none")
            self.shifted, self.shifted_module = self.built, "none"
        else:
            words = dict(shlex.split(line)[0].split("=", 1)
                         for line in shell(["scripts/debug-kernel.sh", KERNEL]).splitlines())
            self.kernel = words["KREL"] + " " + digest(os.path.join(words["KDIR"], "made-of"))
            self.in_tree = os.path.join(words["KDIR"], "net", "sched", "sch_dualpi2.ko")
            module, plugin, meter = prepare(KERNEL)
            self.module = digest(module)
            prague = shell(["scripts/build-for.sh", "--prague", KERNEL, f"{MODULES}/prague/{KERNEL}"]).strip()
            self.prague_module = digest(prague)
            self.built = self.keep([module, os.path.join(plugin, "q_dualpi2.so"), meter, prague])
            self.prague = os.path.join(self.built[1], "tcp_prague.ko")
            if time_shift:
                shifted = shell(["scripts/build-for.sh", KERNEL, f"{MODULES}/time-shift/{KERNEL}",
                                 f"KCFLAGS=-DDUALPI2_TIME_SHIFT_US={TIME_SHIFT_US}"]).strip()
                self.shifted_module = digest(shifted)
                self.shifted = self.keep([shifted, os.path.join(plugin, "q_dualpi2.so"), meter])
            if companions:
                made = shell(["scripts/build-for.sh", "--extra", KERNEL, f"{MODULES}/extra/{KERNEL}"]).strip()
                files = [os.path.join(made, f"sch_{name}.ko") for name in COMPANIONS]
                self.companions = {name: digest(file) for name, file in zip(COMPANIONS, files, strict=True)}
                shell(["make", "--no-print-directory", "extra-plugins"])
                plugins = [os.path.join(plugin, f"q_{kind}.so") for kind in COMPANION_QDISCS]
                # A place of its own: other runs shall find what they found before, and no more.
                self.extra = self.keep([module, os.path.join(plugin, "q_dualpi2.so"), meter, *files, *plugins])
        if udp_prague:
            self.udp_prague = shell(["scripts/udp-prague.sh"]).strip()
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True, capture_output=True, check=False)
        dirty = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, text=True, capture_output=True, check=False)
        self.commit, self.dirty = commit.stdout.strip() or None, bool(dirty.stdout.strip())

    @staticmethod
    def keep(files):
        """Copies of what was built, as prepare() returns them: a build meanwhile must not change a run of hours."""
        place = os.path.join(BUILD, "lab", "bench", digest(*files))
        if not os.path.exists(place):
            new = tempfile.mkdtemp(dir=os.path.join(BUILD, "lab"))
            for path in files:
                shutil.copy(path, new)
            os.chmod(new, 0o755)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with contextlib.suppress(OSError):  # another run was quicker
                os.rename(new, place)
        return os.path.join(place, "sch_dualpi2.ko"), place, os.path.join(place, "delaymeter")

    def method(self):
        """What makes figures of packets today, as a digest."""
        return f"{digest(*(os.path.join(ROOT, f) for f in METHOD), self.built[2])} {MACHINE_MEMORY}"

    def identity(self):
        """All of made_of() that is not of one job, {what: digest}; companions and udp_prague if they were built."""
        built = {"udp_prague": os.path.basename(self.udp_prague)} if self.udp_prague else {}
        built |= {TIME_SHIFT: self.shifted_module} if self.shifted_module else {}
        return {"kernel": self.kernel, "method": self.method(), "dualpi2": self.module, "prague": self.prague_module,
                **self.companions, **built}

    def made_of(self, job):
        """What a run's result depends on: the job itself, the kernel, our module if it is used, how it is measured."""
        made = {"job": job, "kernel": self.kernel, "module": self.module if job["module"] == "dualpi2" else None,
                "method": self.method()}
        if any(g.get("cc") == "prague" for g in job["groups"]):
            made["prague"] = self.prague_module
        if uses_udp_prague(job):
            made["udp_prague"] = os.path.basename(self.udp_prague)
        if is_time_shifted(job):
            made["module"] = f"{TIME_SHIFT} {self.shifted_module}"
        if of_companions(job):
            made["module"] = " ".join(f"{name} {self.companions[name]}" for name in job["module"])
        return made


def of_companions(job):
    """Whether a job's AQM is made of companions."""
    return isinstance(job["module"], list)


def is_time_shifted(job):
    """Whether a job's AQM is our module with a time-shifted FIFO as scheduler."""
    return job["module"] == TIME_SHIFT


def tc_lines(job):
    """The commands that make a job's AQM."""
    where = "root" if job.get("shaper") == "own" else "parent 1:10"
    lines = [f"tc qdisc add dev to_rcv {where} handle 10: {job['qdisc']}"]
    if "child" in job:
        lines.append(f"tc qdisc add dev to_rcv parent 10:1 handle 20: {job['child']}")
    return lines


def repeating(job, options, keep_raw):
    """The command that repeats a job; options: of `lab run` where its sender or length are not the experiment's."""
    return (f"scripts/lab.sh run {job['experiment']} --case {job['case']} --aqm {job['aqm']} --seeds {job['seed']}-"
            f"{job['seed']}{options}{' --keep-raw' * keep_raw} --results {AGAIN}")


def packets(job):
    """How many packets a job sends to the bottleneck, about: a link's full rate, or what UDP alone offers."""
    offered = sum(mbit_of(g["rate"]) * g["count"] for g in job["groups"] if g["kind"] == "udp")
    end = job["warmup"] + job["seconds"]
    steps = [(0, job["rate"]), *((c["at"], c["rate"]) for c in job["changes"]), (end, None)]
    mbits = sum(max(0, min(until, end) - at) * max(mbit_of(rate), offered)
                for (at, rate), (until, _) in zip(steps, steps[1:], strict=False))
    return mbits * 1e6 / 8 / FRAME


def predicted_s(job):
    """Seconds of wall clock that a job takes, with the measured constants above."""
    objects = sum(g["per_second"] for g in job["groups"] if g["kind"] == "web") * (job["warmup"] + job["seconds"])
    return START_S + PACKET_S * packets(job) + OBJECT_S * objects


class Planner:
    """How long runs take: the model, times what finished runs took more or less than it says."""

    def __init__(self, known=()):
        """known: pairs (predicted, measured) of seconds, of earlier runs; the last 50 count."""
        self.known = collections.deque(known, 50)

    def learn(self, predicted, measured):
        """Take in a finished run."""
        self.known.append((predicted, measured))

    def seconds(self, job):
        """Expected seconds of wall clock of one job."""
        predicted = sum(p for p, _ in self.known)
        factor = sum(m for _, m in self.known) / predicted if predicted else 1
        return factor * predicted_s(job)

    def left(self, waiting, busy, jobs):
        """Expected seconds until all is done. waiting: jobs; busy: (job, seconds since its start, share done)."""
        # A run's own pace tells more than the plan, once there is some of it.
        rest = [spent / share - spent if share > 0.1 else max(0, self.seconds(job) - spent)
                for job, spent, share in busy] + [self.seconds(job) for job in waiting]
        return max(sum(rest) / jobs, *rest) if rest else 0


def obstacles(jobs, parallel, directory, keep_raw):
    """What is missing to run them, in lines that say what to do: disk for results, memory for machines."""
    raw = sorted((RAW_BYTES * packets(job) for job in jobs), reverse=True)
    disk = sum(raw if keep_raw else raw[:parallel]) * 1.2 + len(jobs) * 2e6 + 200e6
    free = store.free_bytes(directory)
    if free < disk:
        yield (f"only {free / 1e9:.1f} GB free in {directory}, the runs need {disk / 1e9:.1f}: make room, or give "
               "--results a directory elsewhere")
    with open("/proc/meminfo", encoding="ascii") as file:
        available = int(re.search(r"MemAvailable:\s+(\d+)", file.read())[1]) * 1024
    need = sum(MACHINE_BYTES + EVALUATION * size for size in raw[:parallel])
    # run-vm.sh wants a machine's whole memory free before it starts it, beside what the others hold there.
    shm = (int(MACHINE_MEMORY.removesuffix("G")) << 30) + sum(MACHINE_BYTES + size for size in raw[1:parallel])
    for where, have, wanted in (("memory", available, need), ("/dev/shm", store.free_bytes("/dev/shm"), shm)):
        if have < wanted:
            yield (f"only {have / 2**30:.1f} GiB free in {where}, {parallel} runs at a time need "
                   f"{wanted / 2**30:.1f}: end other programs, or give a smaller --jobs")


class Run:
    """One machine with dumbbell.py: its options by name, and where its results are."""

    def __init__(self, name, **options):
        self.name, self.options = name, options
        self.out = tempfile.mkdtemp(prefix=f"{name}-", dir=os.path.join(BUILD, "lab"))
        self.log = os.path.join(self.out, "log")
        self.process = None

    def start(self, built, kernel="6.1"):
        """Start the machine; built is what prepare() returned."""
        options = [word for key, value in self.options.items() for word in (f"--{key}", str(value))]
        self.launch(built, ["--virtual-time", "--kernel", kernel, "--timeout", "1800"], options)

    def launch(self, built, machine, options):
        """Start a machine with the options of run-vm.sh, in it dumbbell.py with its own."""
        module, plugin, meter = built
        self.spawn([MACHINE, *machine, "--rw", self.out, "--", "env", f"TC_LIB_DIR={plugin}", sys.executable,
                    os.path.join(LAB, "dumbbell.py"), "--module", module, "--delaymeter", meter,
                    "--out", self.out, *options])

    def spawn(self, command):
        """Start a command. It ends when we do, and a Ctrl-C at the terminal does not reach it: we stop it."""
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *command], stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            start_new_session=True)

    def over(self):
        """Whether there is nothing more to wait for."""
        return self.process.poll() is not None

    def progress(self):
        """Share done, 0 to 1."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            found = re.findall(r"^progress (\d+)/(\d+)", log.read(), re.M)
        return int(found[-1][0]) / int(found[-1][1]) if found else 0.0

    def last_words(self, most=8):
        """The end of the log without the progress, at most so many lines."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return [w for w in log.read().splitlines() if w and not w.startswith("progress")][-most:]

    def ask_to_stop(self):
        """First half of stop(): the machine's own way to end, which clears up."""
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def stop(self):
        """End the machine if it runs, by force if it does not within STOP_S."""
        self.ask_to_stop()
        if self.process:
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def check(self):
        """End the program if the run failed."""
        if self.process.returncode:
            sys.exit(f"{self.name}: failed with code {self.process.returncode}:\n" + "\n".join(self.last_words()))


class JobRun(Run):
    """One job of the lab: a machine, then the reduction of what it left, then its place in the results."""

    def __init__(self, job, bench, results, limit_s, keep_raw=False, options=""):
        """limit_s: seconds of wall clock that the machine may take; options: of `lab run`, to repeat it."""
        self.job, self.bench, self.results, self.limit_s = job, bench, results, limit_s
        self.keep_raw, self.options = keep_raw, options
        self.name = store.label(job)
        self.process = self.began = self.made_of = self.wall_s = self.failure = self.sightings = None
        self.reducing = self.done = False

    def start(self, built, kernel=KERNEL):
        """Start the machine."""
        self.out = self.results.begin(self.job)
        self.made_of = self.bench.made_of(self.job)
        self.log = os.path.join(self.out, "log")
        self.began = time.monotonic()
        # A run takes long, and other programs take the same locks.
        lockdep = ["--append", "lockdep=off"] if kernel == "debug" else []
        companions, udp_prague = [], ["--udp-prague", self.bench.udp_prague] if self.bench.udp_prague else []
        if is_time_shifted(self.job):
            built = self.bench.shifted
        if of_companions(self.job):
            built = self.bench.extra
            companions = ["--companions", os.path.dirname(built[0])]
        self.launch(built, ["--kernel", kernel, "--seed", str(self.job["seed"]), "--memory", MACHINE_MEMORY,
                            "--timeout", str(self.limit_s), *lockdep],
                    ["--job", os.path.join(self.out, "job.json"), "--in-tree", self.bench.in_tree,
                     "--prague", self.bench.prague, *udp_prague, *companions, *["--capture"] * self.keep_raw])

    def over(self):
        """Go on to the next step if one is done; whether all are, or one failed."""
        if self.done or self.failure:
            return True
        if self.process.poll() is None:
            # run-vm.sh has a limit itself; this is for one that hangs.
            if time.monotonic() - self.began > self.limit_s + GRACE_S:
                self.fail(f"took more than {self.limit_s} s and was stopped")
        elif self.process.returncode == 124:
            self.fail(f"the machine took more than {self.limit_s} s and was stopped; see --timeout")
        elif self.process.returncode:
            self.fail(f"{'evaluation' if self.reducing else 'machine'} failed with code {self.process.returncode}")
        elif not self.reducing:
            self.reducing = True
            self.sightings = self.checksum("sightings")  # the reduction removes them
            self.spawn(([REDUCE] if REDUCE else [sys.executable, os.path.join(LAB, "measure.py"), "reduce"])
                       + (["--keep-raw"] if self.keep_raw else []) + [self.out])
        else:
            self.finish()
        return self.done or self.failure is not None

    def checksum(self, name):
        """SHA-256 of a file of the run; None if it left none."""
        path = os.path.join(self.out, name)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def finish(self):
        """Put the run into its place."""
        missing = [f for f in ("run.json", "summary.json", "seconds.csv", "histogram.csv")
                   if not os.path.exists(os.path.join(self.out, f))]
        if missing:
            return self.fail(f"left no {', '.join(missing)}")
        job = self.job
        self.wall_s = time.monotonic() - self.began
        self.results.finish(job, self.out, {
            "commit": self.bench.commit, "dirty": self.bench.dirty, "seed": job["seed"],
            "tc": "; ".join(tc_lines(job)),
            "wall_seconds": round(self.wall_s, 1), "predicted_seconds": round(predicted_s(job), 1),
            "command": repeating(job, self.options, self.keep_raw),
            "sightings_sha256": self.sightings, "made_of": self.made_of})
        self.done = True
        return None

    def fail(self, why):
        """End the run, and keep its log."""
        Run.stop(self)
        words = self.last_words(1)
        self.failure = why + "".join(f": {w}" for w in words)
        self.log = self.results.give_up(self.job, self.out, self.log)

    def stop(self):
        """End the run if it is under way; it does not count as failed."""
        if self.process and not self.done and not self.failure:
            Run.stop(self)
            shutil.rmtree(self.out, ignore_errors=True)

    def check(self):
        """A failed run does not end the others."""


def say(text, over=True):
    """A line of progress on stderr, over the last one if it is a terminal."""
    terminal = sys.stderr.isatty()
    width = shutil.get_terminal_size().columns - 1
    print("\r" + text[:width].ljust(width) if terminal else text, end="" if terminal and over else "\n",
          file=sys.stderr, flush=True)


def show(runs, began):
    """Progress of a few runs."""
    parts = [f"{r.name} {r.progress():4.0%}" if r.process else f"{r.name}   -" for r in runs]
    say(f"[{time.monotonic() - began:4.0f} s] " + "  ".join(parts))


@contextlib.contextmanager
def interruptions():
    """A list that an interruption (Ctrl-C, SIGTERM, a closed terminal) fills, in place of ending the program."""
    came = []
    kept = {s: signal.signal(s, lambda number, _: came.append(number))
            for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield came
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def run_all(runs, built, jobs=2, show=show):
    """Run them all; an interruption ends the machines under way, and the program with code 130."""
    began, waiting, busy = time.monotonic(), list(runs), []
    shown = -60.0
    with interruptions() as came:
        try:
            while (waiting or busy) and not came:
                if waiting and len(busy) < jobs:
                    busy.append(waiting.pop(0))
                    busy[-1].start(built)
                    continue
                for done in [r for r in busy if r.over()]:
                    busy.remove(done)
                    done.check()
                if time.monotonic() - shown > (1 if sys.stderr.isatty() else 10):
                    show(runs, began)
                    shown = time.monotonic()
                time.sleep(0.1)
            show(runs, began)
            if sys.stderr.isatty():
                print(file=sys.stderr)
        finally:
            for run in busy:
                run.ask_to_stop()
            for run in busy:
                run.stop()
        if came:
            print("interrupted; the machines are stopped, what was finished is kept", file=sys.stderr)
            sys.exit(130)
