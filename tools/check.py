#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds with the sanitizers and for release, runs the tests and counts: check.py [PART...].

The parts are lint, binary, unit, fuzz and system; without one named, all of them run.
The last line is "N passed, N failed". Anything but passing, a skip too, is a failure, and so is a
part that ran no test: the exit status is then 1.
"""
import collections
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/asan"
RELEASE = ROOT / "build/release"
PYTEST = ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers",
          "--durations=8", "-q"]
PART_SECONDS = 2400

# `report` is the JUnit file that `argv` leaves behind.
Part = collections.namedtuple("Part", "name argv report")


def meson_part(build, suite):
    return Part(suite, ["meson", "test", "-C", str(build), "--suite", suite, "--logbase", suite,
                        "--print-errorlogs"], build / f"meson-logs/{suite}.junit.xml")


PARTS = [
    meson_part(BUILD, "lint"),
    meson_part(RELEASE, "binary"),
    meson_part(BUILD, "unit"),
    meson_part(BUILD, "fuzz"),
    Part("system", [*PYTEST, "tests/system", f"--junitxml={BUILD}/system.junit.xml"],
         BUILD / "system.junit.xml"),
]


def run(title, argv):
    """Runs ARGV, telling how long it took. Returns whether it succeeded."""
    print(f"== {title}", flush=True)
    begun = time.monotonic()
    try:
        code = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=PART_SECONDS,
                              check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"{title} took longer than {PART_SECONDS} s", flush=True)
        code = 1
    print(f"== {title}: {time.monotonic() - begun:.1f} s", flush=True)
    return code == 0


def count(report):
    """(passed, not passed) in a JUnit file; a missing one holds no test."""
    if not report.exists():
        return 0, 0
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    bad = [case for case in cases
           if any(case.find(sign) is not None for sign in ("failure", "error", "skipped"))]
    for case in bad:
        print(f"not passed: {case.get('classname') or ''} {case.get('name')}")
    return len(cases) - len(bad), len(bad)


def check(part):
    part.report.unlink(missing_ok=True)
    succeeded = run(part.name, part.argv)
    passed, failed = count(part.report)
    if passed + failed == 0:
        print(f"{part.name}: no test was run")
    if failed == 0 and not (succeeded and passed):
        failed = 1  # failed without a test that says so
    return passed, failed


def main():
    wanted = sys.argv[1:] or [part.name for part in PARTS]
    parts = [part for part in PARTS if part.name in wanted]
    if len(parts) != len(wanted):
        sys.exit(__doc__)
    if not run("both builds", ["make", "--no-print-directory", "asan", "release"]):
        print("0 passed, 1 failed")
        return 1
    counts = [check(part) for part in parts]
    for part, (passed, failed) in zip(parts, counts):
        print(f"{part.name}: {passed} passed, {failed} not")
    passed, failed = map(sum, zip(*counts))
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
