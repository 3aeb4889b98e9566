#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rules about layers, see docs/architecture.md: which layer includes which, where OpenSSL,
c-ares and epoll may be used, that there is one read path and one write path, and how long a file may be."""
import collections
import pathlib
import re
import sys

CORE = ["base", "buf", "loop", "net", "tls"]
MAY_INCLUDE = {
    "base": [],
    "buf": ["base"],
    "amqp": ["base", "buf"],
    "loop": ["base"],
    "net": ["base", "buf", "loop"],
    "tls": ["base", "buf", "loop", "net"],
    "proxy": CORE + ["amqp"],
    "cmd": CORE + ["amqp", "proxy"],
}
ONLY_IN = {"openssl/": "tls", "sys/epoll.h": "loop", "ares": "net"}
CALLED_ONCE = {
    "recv": "loop", "recvfrom": "loop", "recvmsg": "loop",
    "send": "loop", "sendto": "loop", "sendmsg": "loop",
    "accept": "loop", "accept4": "loop", "connect": "loop",
    "SSL_read": "tls", "SSL_read_ex": "tls", "SSL_write": "tls", "SSL_write_ex": "tls",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(CALLED_ONCE) + r")\s*\(")
MAX_LINES = {".c": 600, ".h": 250}


def without_comments(text):
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])

    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: m[0] if m[0][0] == '"' else blank(m),
                  text, flags=re.S)


def include_violations(path, layer, number, line):
    found = re.match(r'\s*#\s*include\s*[<"]([^">]+)', line)
    if not found:
        return
    target = found[1]
    top = target.split("/")[0]
    bad_layer = top in MAY_INCLUDE and top not in [layer] + MAY_INCLUDE[layer]
    bad_system = any(target.startswith(k) and layer != v for k, v in ONLY_IN.items())
    if bad_layer or bad_system:
        yield f"{path}:{number}: {layer}/ may not include {target}"


def violations(src):
    calls = collections.defaultdict(list)
    for path in sorted(src.rglob("*.[ch]")):
        layer = path.relative_to(src).parts[0]
        if layer not in MAY_INCLUDE:
            yield f"{path}: {layer}/ is no layer"
            continue
        text = path.read_text()
        lines = text.splitlines()
        if len(lines) > MAX_LINES[path.suffix]:
            yield f"{path}: {len(lines)} lines, at most {MAX_LINES[path.suffix]}"
        for number, line in enumerate(lines, 1):
            yield from include_violations(path, layer, number, line)
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            for name in CALL.findall(re.sub(r'"(?:\\.|[^"\\])*"', '""', line)):
                calls[name].append((layer, f"{path}:{number}"))
    for name, places in calls.items():
        if any(layer != CALLED_ONCE[name] for layer, _ in places):
            yield f"{name}() may be called in {CALLED_ONCE[name]}/ only: {places}"
        elif len(places) > 1:
            yield f"{name}() has more than one caller: {[place for _, place in places]}"


found = list(violations(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "layers: ok")
sys.exit(bool(found))
