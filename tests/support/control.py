# SPDX-License-Identifier: Apache-2.0
"""leatctl, leat's control socket by hand, and something else in leat's place."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

import leat as leats
import process

BINARY = os.environ.get(
    "LEATCTL_BIN", str(pathlib.Path(leats.BINARY).parents[1] / "leatctl/leatctl"))
SECONDS = 20
WATCHING = "watching; Ctrl-C ends it\n"  # on standard error, unless the answer says it


def _environment(more=None):
    environment = process.environment(
        ASAN_OPTIONS="abort_on_error=0:exitcode=99:detect_leaks=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=99", **(more or {}))
    if not (more and "LEAT_SOCKET" in more):
        environment.pop("LEAT_SOCKET", None)
    return environment


def run(path, *args, environment=None, seconds=SECONDS):
    """Runs leatctl with ARGS for the socket at PATH (None: it is not named) to its end. Returns
    the CompletedProcess, with text."""
    argv = [BINARY, *(["-s", str(path)] if path else []), *map(str, args)]
    return subprocess.run(argv, capture_output=True, encoding="utf-8", timeout=seconds,
                          env=_environment(environment), stdin=subprocess.DEVNULL, check=False)


def done(path, *args):
    """Runs leatctl, which must succeed without a word of complaint; returns its output."""
    ran = run(path, *args)
    assert (ran.returncode, ran.stderr.removeprefix(WATCHING)) == (0, ""), ran
    return ran.stdout


def refused(path, *args, status=1, **options):
    """Runs leatctl, which must end with STATUS and one sentence; returns the sentence."""
    ran = run(path, *args, **options)
    assert ran.returncode == status, ran
    said = ran.stderr.removeprefix(WATCHING)
    assert said.startswith("leatctl: ") and said.count("\n") == 1, ran
    return said.strip().removeprefix("leatctl: ")


def answer(path, *args):
    """What leat answers, of `leatctl --json`."""
    text = done(path, "--json", *args)
    assert text.count("\n") == 1, text
    return json.loads(text)


def sessions(path, *filters):
    return answer(path, "sessions", *filters)["sessions"]


class Watch:
    """A leatctl that follows or traces. Its lines are read as they come."""

    def __init__(self, path, *args):
        self.lines, self.ended = [], False
        self._news = threading.Condition()
        self.process = process.start(
            [BINARY, "-s", str(path), *map(str, args)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=_environment(), text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self.ended = True
            self._news.notify_all()

    def wait(self, text, count=1):
        """Waits for COUNT lines with TEXT; returns the last of them."""
        def found():
            return [line for line in self.lines if text in line]

        with self._news:
            self._news.wait_for(lambda: self.ended or len(found()) >= count, SECONDS)
            assert len(found()) >= count, f"not {count} lines with {text!r} in {self.lines}"
            return found()[count - 1]

    def provoke(self, text, act):
        """Calls ACT until there is a line with TEXT, for a watch that does not say that it is in
        force; returns the line."""
        found = []
        for _ in range(SECONDS * 20):
            act()
            with self._news:
                self._news.wait_for(lambda: any(text in line for line in self.lines), 0.05)
                found = [line for line in self.lines if text in line]
            if found:
                return found[0]
        raise AssertionError(f"no line with {text!r} in {self.lines}")

    def end(self):
        """Waits for its end by itself; returns status and standard error."""
        status = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        errors = self.process.stderr.read().removeprefix(WATCHING)
        self.process.stderr.close()
        self.process.stdout.close()
        return status, errors

    def interrupt(self):
        """Ctrl-C, after which nothing may be said and the status is 0."""
        self.process.send_signal(signal.SIGINT)
        assert self.end() == (0, "")


class Raw:
    """A connection to the control socket at PATH."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(path))
        self.file = self.sock.makefile("rb")

    def send(self, data):
        self.sock.sendall(data)

    def take(self):
        """The next line's JSON; None at the end."""
        line = self.file.readline()
        assert line == b"" or line.endswith(b"\n"), f"the line {line} is cut"
        return json.loads(line) if line else None

    def ask(self, **request):
        self.send(json.dumps(request).encode() + b"\n")
        return self.take()

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Scripted:
    """Listens at PATH in place of a leat and runs SCRIPT(connection, request) in a thread for each
    connection. `requests` are all that came."""

    def __init__(self, path, script):
        self.path, self.script, self.requests = path, script, []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, connection.makefile("rb") as lines:
                    connection.settimeout(SECONDS)
                    line = lines.readline()
                    if line:
                        self.requests.append(json.loads(line))
                        self.script(connection, self.requests[-1])

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)


def saying(*lines, end=b"\n"):
    """A script that answers with LINES, JSON or bytes, each with END."""
    def script(connection, _request):
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            connection.sendall(data + end)
    return script
