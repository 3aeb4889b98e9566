#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of build/fuzz one after the other, for --seconds each.

What is found to lead somewhere new is kept in build/fuzz/corpus/TARGET, and what fails, with the
log, in build/fuzz/findings/TARGET; the exit status is 1 then. With --merge nothing is tried out:
of what was kept, and of tests/fuzz/corpus/TARGET, the least that leads everywhere becomes the new
tests/fuzz/corpus/TARGET. Files there that are called otherwise than by their hash stay.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/fuzz"
TESTS = ROOT / "tests/fuzz"
INPUT_SECONDS = 10
INPUT_MAX = 4096
CORPUS_FILES_MAX = 200
CORPUS_BYTES_MAX = 200_000
ON_TERMINAL = sys.stdout.isatty()
TICK_SECONDS = 1 if ON_TERMINAL else 20
HASH = re.compile(r"[0-9a-f]{40}")
STATUS = re.compile(r"#(\d+)\s+[A-Za-z]+\s+cov: (\d+).* corp: (\d+)/")
ENVIRON = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def binary(name):
    return BUILD / "tests/fuzz" / f"fuzz-{name}"


def target_names():
    return sorted(path.name.removeprefix("fuzz-") for path in binary("*").parent.glob("fuzz-*")
                  if path.is_file())


def follow(stream, log, seen):
    """Copies STREAM to LOG and keeps what it says of the run in SEEN."""
    for line in stream:
        log.write(line)
        found = STATUS.search(line)
        if found:
            seen.update(zip(("inputs", "covered", "kept"), found.groups()))


def say_progress(name, seconds, begun, seen, end):
    text = (f"{name}: {time.monotonic() - begun:.0f} of {seconds} s, {seen['inputs']} inputs,"
            f" {seen['covered']} branches, {seen['kept']} inputs kept")
    print(f"\r{text}\033[K" if ON_TERMINAL else text, end=end, flush=True)


def run(name, seconds, argv, log):
    """Runs ARGV, telling how it goes. Returns its exit status."""
    begun = time.monotonic()
    seen = {"inputs": 0, "covered": 0, "kept": 0}
    with subprocess.Popen(argv, cwd=BUILD, env=ENVIRON, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace") as process:
        reader = threading.Thread(target=follow, args=(process.stderr, log, seen))
        reader.start()
        try:
            while process.poll() is None:
                try:
                    process.wait(TICK_SECONDS)
                except subprocess.TimeoutExpired:
                    say_progress(name, seconds, begun, seen, "" if ON_TERMINAL else "\n")
        finally:
            process.kill()
            reader.join()
        say_progress(name, seconds, begun, seen, "\n")
        return process.returncode


def fuzz(name, seconds):
    """Returns whether TARGET has stood it."""
    kept, findings = BUILD / "corpus" / name, BUILD / "findings" / name
    kept.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    argv = [str(binary(name)), f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}",
            f"-max_len={INPUT_MAX}", f"-artifact_prefix={findings}/"]
    if (TESTS / f"{name}.dict").exists():
        argv.append(f"-dict={TESTS / name}.dict")
    log_name = findings / "log"
    with open(log_name, "w", encoding="utf-8") as log:
        code = run(name, seconds, [*argv, str(kept), str(TESTS / "corpus" / name)], log)
    if code == 0:
        return True
    lines = log_name.read_text(encoding="utf-8").splitlines()
    print("\n".join(lines[-40:]))
    print(f"{name}: FAILED; {log_name} has it all. To see it again:"
          f" {binary(name)} {findings}/INPUT", flush=True)
    return False


def minimise(name, directory, counted):
    """Fills DIRECTORY with the least of what is known. Returns how many files, and bytes."""
    corpus, kept = TESTS / "corpus" / name, BUILD / "corpus" / name
    for path in corpus.iterdir():
        if not HASH.fullmatch(path.name):
            shutil.copy(path, directory)
    subprocess.run([str(binary(name)), "-set_cover_merge=1", f"-use_counters={int(counted)}",
                    f"-max_len={INPUT_MAX}", directory, str(corpus), str(kept)],
                   env=ENVIRON, check=True, stderr=subprocess.DEVNULL)
    sizes = [path.stat().st_size for path in pathlib.Path(directory).iterdir()]
    return len(sizes), sum(sizes)


def merge(name):
    """Returns whether the new corpus keeps to its limits."""
    # Better are inputs for how often a branch is taken too, but they can be far too many.
    for counted in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            files, size = minimise(name, directory, counted)
            if 0 < files <= CORPUS_FILES_MAX and size <= CORPUS_BYTES_MAX:
                shutil.rmtree(TESTS / "corpus" / name)
                shutil.copytree(directory, TESTS / "corpus" / name)
                print(f"{name}: {files} inputs, {size} bytes", flush=True)
                return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--merge", action="store_true", help="make the corpora small instead")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    options = parser.parse_args()
    known = target_names()
    names = options.targets or known
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        sys.exit(f"no such fuzz target: {' '.join(unknown)}; there are: {' '.join(known)}")
    if options.merge:
        bad = [name for name in names if not merge(name)]
        sys.exit(f"too large, or empty, and left as it was: {' '.join(bad)}" if bad else 0)
    failed = [name for name in names if not fuzz(name, options.seconds)]
    print(f"{len(names) - len(failed)} targets passed, {len(failed)} failed {' '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
