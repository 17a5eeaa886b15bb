#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prove the functions prove_* of this directory with CBMC, on 64 and on 32 bit.

Each proof holds for all inputs that it does not exclude. Besides its own claims it shows that no statement on the way
overflows, loses bits in a conversion, divides by zero, shifts too far or leaves an array. The algorithm's headers are
those of the module, unmodified. A comment '/* proof: WORDS */' before a proof says: long (only with --long), slow (on
32 bit only with --long), a solver (cvc5, z3) where the default one takes too long, 64 (not proved on 32 bit), once (it
is shown that no loop is repeated, which CBMC does not find out by itself), modulo (unsigned numbers may overflow on
purpose), FUNCTION:CONTRACT (calls of FUNCTION are replaced by calls of CONTRACT, a function of the proofs with any
result that its own proof allows). Each function of the headers must be in a proof.

scripts/proof.sh runs this program in a Debian tree that has CBMC.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import typing

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CHECKS = ["--unwinding-assertions", "--conversion-check", "--pointer-overflow-check"]
BITS = {"64": [], "32": ["-m32"]}
# Bits are lost on purpose: what the expression must contain, and why.
WANTED = {
    "s->dither_q32 * 1664525": "linear congruential sequence, modulo 2^32",
    "(s32)s->dither_q32": "the dither is signed",
    "(u32)pkt->rnd": "lower half of the random bits",
    "(u32)now_ns": "lower 32 bits, compared modulo 2^32",
    "(u32)d->busy_bytes": "lower 32 bits, compared modulo 2^32",
    "(u32)now_ns + (unsigned int)1": "lower 32 bits, compared modulo 2^32",
    "d->begin_ns": "lower 32 bits, compared modulo 2^32",
    "d->sum_ns + delay_ns": "the sum wraps around",
    "low[(signed long int)bucket] + 1": "carries over to high[]",
    "low[(signed int)bucket] + 1": "carries over to high[]",
    "high[(signed long int)bucket] + 1": "2^48 packets take nine years",
    "high[(signed int)bucket] + 1": "2^48 packets take nine years",
    "(u32)count": "the lower half of a bucket; the upper half takes the rest",
    "ramp->min_ns) * ramp->slope": "below 2^48 in the ramp: the slope is 2^48 divided by its width",
}


class Proof(typing.NamedTuple):
    file: str
    name: str
    words: frozenset


class Result(typing.NamedTuple):
    failures: list
    claims: int
    seconds: float


def proofs():
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.c"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in re.finditer(r"(?:/\* proof: ([^*]*) \*/\n)?void prove_(\w+)\(void\)", text):
            found.append(Proof(path, match[2], frozenset((match[1] or "").split())))
    return found


def build(proof, bits, headers, where):
    """The program of a proof's file, as CBMC reads it."""
    out = os.path.join(where, f"{proof.name}.{bits}.goto")
    subprocess.run(["goto-cc", *BITS[bits], "-std=gnu11", f"-I{ROOT}/selftests/unit/include", f"-I{headers}",
                    f"-I{ROOT}/include", f"-I{HERE}", "-o", out, proof.file], check=True)
    return out


def with_contracts(proof, program):
    """The program with its calls replaced as the proof says."""
    calls = [word for word in proof.words if ":" in word]
    if not calls:
        return program
    out = f"{program}.{proof.name}"
    subprocess.run(["goto-instrument", *(word for call in sorted(calls) for word in ("--replace-calls", call)),
                    program, out], check=True, capture_output=True)
    return out


def functions_of(proof, program):
    """The functions of the headers that a proof calls."""
    done = subprocess.run(["cbmc", with_contracts(proof, program), "--function", "prove_" + proof.name,
                           "--drop-unused-functions", "--list-goto-functions"],
                          capture_output=True, text=True, check=False)
    return set(re.findall(r"\b(dualpi2_\w+)", done.stdout))


def functions_without_a_proof(programs):
    """Functions of the headers that no proof calls; a contract in their place does not count."""
    known, called = set(), set()
    for path in glob.glob(os.path.join(ROOT, "include/net/*.h")):
        with open(path, encoding="utf-8") as file:
            known |= set(re.findall(r"^static [^;={}#]*?\b(dualpi2_\w+)\([^;{}]*\)\n{", file.read(), re.M))
    for proof in proofs():
        called |= functions_of(proof, programs[proof.file])
    with open(os.path.join(HERE, "exhaust.c"), encoding="utf-8") as file:
        called |= set(re.findall(r"\b(dualpi2_\w+)\(", file.read()))
    return sorted(known - called)


def is_wanted(claim):
    return any(text in claim["description"] for text in WANTED)


def run(proof, program, first=False, limit_s=None):
    """What does not hold; `first`: one of them is enough, which the default solver finds in seconds, others slower."""
    began = time.monotonic()
    options = [f"--{word}" for word in ("cvc5", "z3") if word in proof.words]
    first = first and not options
    options += ["--stop-on-fail"] if first else []
    options += ["--unwind", "2"] if "once" in proof.words else []
    options += [] if "modulo" in proof.words else ["--unsigned-overflow-check"]
    done = subprocess.run(["cbmc", with_contracts(proof, program), "--function", "prove_" + proof.name, "--json-ui",
                           "--drop-unused-functions", *options, *CHECKS],
                          capture_output=True, text=True, check=False, timeout=limit_s)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        return Result([f"cbmc ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}"], 0, 0)
    if first:
        claims = [part for part in answer if part.get("status") == "failed"]
        if any(is_wanted(claim) for claim in claims):
            return run(proof, program)
        if {"cProverStatus": "success"} in answer:
            return Result([], 0, time.monotonic() - began)
    else:
        claims = next((part["result"] for part in answer if "result" in part), None)
    if not claims:
        texts = [part["messageText"] for part in answer if part.get("messageType") == "ERROR"]
        return Result(texts or ["cbmc gave no result"], 0, 0)
    failures = [f"{claim['description']}, {place(claim)}" for claim in claims
                if claim["status"] != "SUCCESS" and not is_wanted(claim)]
    return Result(failures, len(claims), time.monotonic() - began)


def broken(proof, where):
    """Headers with the fault that the proof must find."""
    with open(os.path.join(HERE, "broken.toml"), "rb") as file:
        faults = tomllib.load(file)
    if proof.name not in faults:
        sys.exit(f"prove.py: broken.toml has no fault for {proof.name}; add one")
    fault = faults[proof.name]
    headers = os.path.join(where, proof.name)
    shutil.copytree(os.path.join(ROOT, "include"), headers)
    path = os.path.join(headers, "net", f"dualpi2_{fault['file']}.h")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(fault["old"]) != 1:
        sys.exit(f"prove.py: broken.toml, {proof.name}: '{fault['old']}' must be once in {path}, but is there "
                 f"{text.count(fault['old'])} times")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(fault["old"], fault["new"]))
    return headers


def fails(proof, program):
    """What takes longer than a minute counts as not noticed."""
    try:
        return run(proof, program, True, 60).failures
    except subprocess.TimeoutExpired:
        return []


def mutants(count, where):
    """How many of the unit tests' mutants does a proof notice? Equivalent ones count as not noticed."""
    sys.path.insert(0, os.path.join(ROOT, "selftests/unit"))
    import mutate  # pylint: disable=import-outside-toplevel
    source, _, place = mutate.flatten(mutate.TOP / "include/net/dualpi2.h")
    headers = os.path.join(where, "mutant")
    os.makedirs(os.path.join(headers, "net"))
    short = [proof for proof in proofs() if "long" not in proof.words]
    calls = {proof: functions_of(proof, build(proof, "64", os.path.join(ROOT, "include"), where)) for proof in short}
    noticed = total = 0
    drawn = random.Random(1).sample(list(mutate.Generator(source).found.values()), count)
    for mutant in drawn:
        with open(os.path.join(headers, "net/dualpi2.h"), "w", encoding="utf-8") as file:
            file.write(mutant.apply(source))
        by = None
        try:
            for proof in short:
                if (mutant.macro or mutant.where in calls[proof]) and fails(proof, build(proof, "64", headers, where)):
                    by = proof.name
                    break
        except subprocess.CalledProcessError:
            continue        # does not compile
        total += 1
        noticed += bool(by)
        print(f"# {place(mutant.begin)}: {mutant.describe(source)}: {by or 'not noticed'}", flush=True)
    print(f"# {noticed} of {total} mutants noticed by a proof")
    return 0


def exhaust(long, where):
    """What no prover decides: [(text of the result, passed)]."""
    program = os.path.join(where, "exhaust")
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/selftests/unit/include",
                    f"-I{ROOT}/include", "-o", program, os.path.join(HERE, "exhaust.c")], check=True)
    done = subprocess.run([program, "1" if long else "97"], capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return [(name, f"ok {name}" in done.stdout.replace("not ok", "no")) for name in
            ("1 gain_is_rounded_to_nearest", "2 root_is_the_smallest")]


def all_functions(where):
    """Whether each function is in a proof, as exhaust() returns it."""
    one_of_each_file = {proof.file: proof for proof in proofs()}.values()
    missing = functions_without_a_proof({proof.file: build(proof, "64", os.path.join(ROOT, "include"), where)
                                         for proof in one_of_each_file})
    for name in missing:
        print(f"# {name}() is in no proof", file=sys.stderr)
    return [("3 each_function_is_in_a_proof", not missing)]


def place(claim):
    at = claim.get("sourceLocation") or claim.get("trace", [{}])[-1].get("sourceLocation", {})
    return f"{os.path.basename(at.get('file', '?'))}:{at.get('line', '?')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", action="append", metavar="NAME", help="proofs whose name contains it")
    parser.add_argument("--long", action="store_true", help="also those that take minutes")
    parser.add_argument("--bits", choices=BITS, help="only on these machines")
    parser.add_argument("--broken", action="store_true", help="break the headers once for each proof: it must fail")
    parser.add_argument("--mutants", type=int, metavar="N",
                        help="how many of N mutants of the headers does a proof notice?")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not shutil.which("cbmc"):
        sys.exit("prove.py: cbmc is missing; run scripts/proof.sh")
    if args.mutants:
        with tempfile.TemporaryDirectory() as where:
            return mutants(args.mutants, where)
    wanted = [(proof, bits) for proof in proofs() for bits in BITS
              if (not args.k or any(part in proof.name for part in args.k)) and args.bits in (None, bits)
              and (args.long or "long" not in proof.words and (bits == "64" or "slow" not in proof.words))
              and (bits == "64" or "64" not in proof.words)]
    if args.broken:
        wanted = [(proof, bits) for proof, bits in wanted if bits == "64"]
    if not wanted:
        sys.exit("prove.py: no proof has such a name")
    with tempfile.TemporaryDirectory() as where, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return report(args, wanted, where, pool)


def report(args, wanted, where, pool):
    others = [] if args.broken or args.k or args.bits else exhaust(args.long, where) + all_functions(where)
    print(f"TAP version 13\n1..{len(wanted) + len(others)}", flush=True)
    headers = os.path.join(ROOT, "include")
    programs = {}
    for proof, bits in wanted:
        if args.broken:
            programs[proof, bits] = build(proof, bits, broken(proof, where), where)
        elif (proof.file, bits) not in programs:
            programs[proof.file, bits] = build(proof, bits, headers, where)
    running = [pool.submit(run, proof, programs[proof if args.broken else proof.file, bits], args.broken)
               for proof, bits in wanted]
    failed = 0
    for number, ((proof, bits), future) in enumerate(zip(wanted, running), 1):
        result = future.result()
        for text in result.failures:
            print(f"# {text}")
        good = bool(result.failures and result.claims) if args.broken else not result.failures
        failed += not good
        print(f"# {result.claims} claims, {result.seconds:.1f} s")
        name = f"{proof.name}_{'broken' if args.broken else bits + '_bit'}"
        print(f"{'ok' if good else 'not ok'} {number} {name}", flush=True)
    for number, (name, good) in enumerate(others, len(wanted) + 1):
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} {name.partition(' ')[2]}")
    total = len(wanted) + len(others)
    print(f"# Totals: pass:{total - failed} fail:{failed} xfail:0 xpass:0 skip:0 error:0")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
