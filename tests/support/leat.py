# SPDX-License-Identifier: Apache-2.0
"""Runs the built leat and reads its log."""
import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading

import process

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("LEAT_BIN", str(ROOT / "build/asan/src/cmd/leat/leat"))
START_SECONDS = 30
LINE_SECONDS = 20
STOP_SECONDS = 60

# Code and text of Closes that leat sends of itself.
NO_BROKER = (320, "CONNECTION_FORCED - no broker can be reached")
BROKER_LOST = (320, "CONNECTION_FORCED - broker connection lost")

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (error|warn|info|debug|trace) (.*)")
FIELD = re.compile(r'([\w.-]+)=("(?:[^"\\]|\\.)*"|\S*)')
FAULT = re.compile(r"Sanitizer|runtime error:|internal error|assertion", re.IGNORECASE)

# One event: its level, the words that are no fields, and the fields with quotes removed.
Line = collections.namedtuple("Line", "level words fields text")


def parse(text):
    found = LINE.fullmatch(text)
    if not found:
        return Line("", text.split(), {}, text)
    body = found[3]
    fields = {name: value[1:-1] if value.startswith('"') else value
              for name, value in FIELD.findall(body)}
    return Line(found[2], FIELD.sub("", body).split(), fields, text)


def _environment():
    return process.environment(
        ASAN_OPTIONS="abort_on_error=0:exitcode=99:detect_leaks=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=99")


def run(*args, seconds=START_SECONDS):
    """Runs leat with ARGS to its end. Returns the CompletedProcess, with text."""
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True,
                          timeout=seconds, env=_environment(), stdin=subprocess.DEVNULL,
                          check=False)


class Leat:
    """A running leat; ready, with its `ports`, or paths of UNIX sockets, in the order of its
    listeners, once constructed.

    LISTEN and BACKEND are URLs or lists of them, MORE further arguments. CERTS, a certs.Certs,
    gives the certificate for amqps:// listeners, if there are any. DESCRIPTORS, if given, is how
    many files it may have open. FILE is a configuration in place of all these, with LISTENERS
    listeners.
    """

    def __init__(self, listen=(), backend=(), certs=None, more=(), descriptors=None, file=None,
                 listeners=1):
        listen = [listen] if isinstance(listen, str) else listen
        backend = [backend] if isinstance(backend, str) else backend
        argv = [BINARY]
        for url in listen:
            argv += ["--listen", url]
        for url in backend:
            argv += ["--backend", url]
        if certs and any(url.startswith("amqps") for url in listen):
            argv += ["--cert", certs.cert, "--key", certs.key]
        argv += ["-c", file] if file else []
        argv += more
        self.lines = []
        self._news = threading.Condition()
        self._ended = False
        self.process = process.start([str(arg) for arg in argv], descriptors,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     env=_environment())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            ready = [self.wait("listening", number=number, seconds=START_SECONDS)
                     for number in range(listeners if file else len(listen))]
        except BaseException:
            self.kill()
            raise
        ends = [line.fields["on"].rsplit(":", 1)[1] for line in ready]
        self.ports = [int(end) if end.isdigit() else end.removeprefix("//") for end in ends]
        self.port = self.ports[0]
        self.ready_at = len(self.lines)  # where the lines about sessions begin

    def _read(self):
        for raw in self.process.stderr:
            line = parse(raw.decode(errors="replace").rstrip("\n"))
            with self._news:
                self.lines.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def find(self, *words, since=0, **fields):
        """All lines so far, from index SINCE, that have all WORDS and all FIELDS."""
        wanted = {name: str(value) for name, value in fields.items()}
        return [line for line in self.lines[since:]
                if set(words) <= set(line.words) and wanted.items() <= line.fields.items()]

    def wait(self, *words, number=0, since=0, seconds=LINE_SECONDS, **fields):
        """Waits for the line NUMBER (from 0) that has all WORDS and FIELDS; returns it."""
        found = []
        looked_at = since

        def there():
            nonlocal looked_at
            found.extend(self.find(*words, since=looked_at, **fields))
            looked_at = max(looked_at, len(self.lines))
            return self._ended or len(found) > number

        with self._news:
            self._news.wait_for(there, seconds)
        if len(found) <= number:
            raise AssertionError(f"no log line number {number} with {words} {fields} in\n"
                                 + self.text())
        return found[number]

    def the_end(self, event, by, **fields):
        """Waits for the line about the only session's end, brought about BY a side; it must be
        an EVENT (closed, refused or failed) with FIELDS. Returns it."""
        line = self.wait(by=by)
        wanted = {name: str(value) for name, value in fields.items()}
        assert event in line.words and wanted.items() <= line.fields.items(), line.text
        ends = [one for one in self.lines if "by" in one.fields]
        assert len(ends) == 1, self.text()
        return line

    def text(self):
        return "\n".join(line.text for line in self.lines[-200:])

    def status(self):
        """Asks for the counters. Returns them as a dict of int."""
        since = len(self.lines)
        self.process.send_signal(signal.SIGUSR1)
        line = self.wait("status", since=since)
        return {name: int(value) for name, value in line.fields.items() if value.isdigit()}

    def check_log(self):
        faults = [line.text for line in self.lines if FAULT.search(line.text)]
        assert not faults, "leat's log has\n" + self.text()

    def end(self):
        """Waits until leat has ended and its log is read; returns the exit status."""
        status = self.process.wait(STOP_SECONDS)
        self._reader.join(LINE_SECONDS)
        return status

    def stop(self):
        """SIGTERM until it ends, so that no drain is waited for; then nothing may be wrong."""
        for _ in range(STOP_SECONDS * 5):  # two signals at once may count as one
            if self.process.poll() is not None:
                break
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
        status = self.end()
        self.check_log()
        assert status == 0, f"leat ended with {status}:\n{self.text()}"

    def kill(self):
        self.process.kill()
        self.end()
