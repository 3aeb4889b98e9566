#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds how a program was hardened and what its libraries show: check_binary.py PROGRAM LIBRARY...

The program has full RELRO, is position-independent, has no executable stack, is built with the stack
protector and fortified functions, and exports nothing of its own. Every symbol of a library that is
not static is hidden and begins with leat_; on x86 all its objects are made for CET. (The program as
a whole is not, where the C library's start files are not.)
"""
import re
import subprocess
import sys

# Of the ELF header, the program headers, the dynamic section: what must be there.
WANTED = {
    "position-independent (-pie)": r"^\s*Type:\s+DYN .*\n(?s:.*)\(FLAGS_1\).*\bPIE\b",
    "RELRO (-z relro)": r"^\s*GNU_RELRO\b",
    "all symbols bound at the start (-z now)": r"\(FLAGS\).*\bBIND_NOW\b",
    "a stack that is not executable (-z noexecstack)": r"^\s*GNU_STACK\s.*\sRW\s",
}
# What the program calls if the flag had an effect.
WANTED_CALLS = {
    "the stack protector (-fstack-protector-strong)": r"^__stack_chk_fail$",
    "fortified functions (-D_FORTIFY_SOURCE)": r"^__(?!stack_)\w+_chk$",
}


def output_of(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


def symbols(path, table):
    """(binding, visibility, section, name, is it versioned) of each symbol with a name."""
    for line in output_of("readelf", "-W", table, path).splitlines():
        found = re.match(r"\s*\d+: \w+\s+\w+\s+\w+\s+(\w+)\s+(\w+)\s+(\w+) ([^\s@]+)(@?)", line)
        if found:
            yield found.groups()


def program_violations(path):
    headers = output_of("readelf", "-W", "-h", "-l", "-d", path)
    for what, pattern in WANTED.items():
        if not re.search(pattern, headers, re.M):
            yield f"{path}: is without {what}"
    dynamic = list(symbols(path, "--dyn-syms"))
    for what, pattern in WANTED_CALLS.items():
        if not any(re.search(pattern, name) for _, _, _, name, _ in dynamic):
            yield f"{path}: is without {what}"
    for _, _, section, name, versioned in dynamic:
        # A variable of the C library (stdout) is defined in the program too, with its version.
        if section != "UND" and not versioned:
            yield f"{path}: exports {name}"


def library_violations(path):
    shown = [(visibility, name) for binding, visibility, section, name, _ in symbols(path, "-s")
             if binding != "LOCAL" and section != "UND"]
    if not shown:
        yield f"{path}: has no symbol"
    for visibility, name in shown:
        if not name.startswith("leat_"):
            yield f"{path}: {name} neither is static nor begins with leat_"
        if visibility != "HIDDEN":
            yield f"{path}: {name} is not hidden (-fvisibility=hidden)"
    if "X86-64" in output_of("readelf", "-h", path):
        for part in output_of("readelf", "-n", path).split("File: ")[1:]:
            if not re.search(r"x86 feature: .*\bIBT\b.*\bSHSTK\b", part):
                yield f"{part.split()[0]}: is not made for CET (-fcf-protection)"


def main():
    program, *libraries = sys.argv[1:]
    found = list(program_violations(program))
    for library in libraries:
        found += library_violations(library)
    print("\n".join(found) or f"{program} and {len(libraries)} libraries: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
