#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows leat at work: a RabbitMQ on loopback, leat with TLS before it, and applications that
reach it through leat. Runs until Ctrl-C or for --seconds; everything it starts ends with it.

The exit status is 0 only if every message came back as it was sent.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = ROOT / "build/release/src/cmd/leat/leat"
os.environ["LEAT_BIN"] = str(BINARY)
sys.path.insert(0, str(ROOT / "tests/support"))

# The path above has to be set before.
import pika  # noqa: E402

import certs as certificates  # noqa: E402
import clients  # noqa: E402
import leat as leats  # noqa: E402
import process  # noqa: E402
import rabbitmq  # noqa: E402

AMQPS_PORT = 5671
SMALL_MESSAGES = 1000
LARGE_BYTES = 8_000_000
LOAD_SESSIONS = 4
LOAD_BYTES = 32_768
LOAD_PAUSE_SECONDS = 0.1
PLAIN_LINE_SECONDS = 5
ON_TERMINAL = sys.stdout.isatty()


def say(text=""):
    print(text, flush=True)


class Step:
    """A long step: says what is being done and, on a terminal, for how long already."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.begun = time.monotonic()
        print(f"{self.text} ...", end="", flush=True)
        return self

    def wait(self):
        """To be called now and then while the step lasts."""
        if ON_TERMINAL:
            print(f"\r{self.text} ... {time.monotonic() - self.begun:.0f} s", end="", flush=True)

    def __exit__(self, kind, *_):
        start = f"\r{self.text} ..." if ON_TERMINAL else ""
        say(f"{start} {'failed' if kind else 'done'} in {time.monotonic() - self.begun:.1f} s")


def build():
    with Step("Building leat") as step, tempfile.TemporaryFile("w+") as output:
        make = process.start(["make", "--no-print-directory", "release"], cwd=ROOT,
                             stdout=output, stderr=output)
        try:
            while make.poll() is None:
                step.wait()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    make.wait(0.2)
        finally:
            process.stop(make)
        if make.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"leat could not be built:\n{output.read()[-4000:]}")


def start_rabbitmq(stack):
    with Step("Starting a RabbitMQ on loopback") as step:
        node = rabbitmq.RabbitMQ(on_wait=step.wait)
    stack.callback(node.stop)
    return node


def start_leat(stack, certs, node):
    """On the usual AMQPS port if that is free, else on one that the kernel chooses."""
    try:
        socket.create_server(("127.0.0.1", AMQPS_PORT)).close()
        port = AMQPS_PORT
    except OSError:
        port = 0
    leat = leats.Leat(f"amqps://127.0.0.1:{port}", f"amqp://127.0.0.1:{node.port}", certs)
    stack.callback(leat.stop)
    return leat


def exchange(port, context):
    """Many small messages and a large one, there and back. Returns how many came back changed."""
    connection = clients.connect(port, context)
    channel = connection.channel()
    channel.confirm_delivery()
    queue = clients.private_queue(channel)
    sent = [os.urandom(100) for _ in range(SMALL_MESSAGES)] + [os.urandom(LARGE_BYTES)]
    for body in sent:
        channel.basic_publish("", queue, body, mandatory=True)
    received = [channel.basic_get(queue, auto_ack=True)[2] for _ in sent]
    connection.close()
    return sum(before != after for before, after in zip(sent, received))


def show_exchange(leat, context):
    """Returns whether all came back as it was sent."""
    with Step(f"Sending {SMALL_MESSAGES:,} small messages and one of {LARGE_BYTES:,} bytes "
              "through leat"):
        changed = exchange(leat.port, context)
    opened, closed = leat.wait("opened").fields, leat.wait("closed").fields
    say()
    say(f"  The client reached leat with {opened['tls']} ({opened['cipher']}) and verified its")
    say(f"  certificate. leat let user {opened['user']} into vhost {opened['vhost']}, by the broker "
        f"{opened['backend']}.")
    say(f"  {int(closed['bytes_in']):,} bytes went to the broker, {int(closed['bytes_out']):,} came"
        f" back, in {float(closed['seconds']):.1f} s.")
    if changed:
        say(f"  {changed} MESSAGES WERE CHANGED OR LOST.")
    else:
        say(f"  All {SMALL_MESSAGES + 1:,} messages were confirmed by the broker and came back byte"
            " for byte.")
    say()
    return changed == 0


def show_how_to_connect(leat, certs):
    say("To reach it with a client of your own, while this runs:")
    say()
    say(f"  openssl s_client -connect 127.0.0.1:{leat.port} -servername localhost \\")
    say(f"    -verify_hostname localhost -CAfile {certs.ca}")
    say()
    say(f"  amqps://guest:guest@localhost:{leat.port}/%2F   (with the CA file {certs.ca})")
    say()
    say("  /usr/bin/python3 -c '")
    say("  import pika, ssl")
    say(f'  tls = pika.SSLOptions(ssl.create_default_context(cafile="{certs.ca}"), "localhost")')
    say(f'  where = pika.ConnectionParameters("localhost", {leat.port}, ssl_options=tls)')
    say("  channel = pika.BlockingConnection(where).channel()")
    say('  queue = channel.queue_declare("", exclusive=True).method.queue')
    say('  channel.basic_publish("", queue, b"hello through leat")')
    say("  print(channel.basic_get(queue)[2])'")
    say()


class Load:
    """A few sessions that send a message now and then and look whether it comes back."""

    def __init__(self, port, context):
        self.port, self.context = port, context
        self.counts = collections.Counter()
        self.failure = None
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(LOAD_SESSIONS)]
        for thread in self._threads:
            thread.start()

    def _run(self):
        try:
            connection = clients.connect(self.port, self.context)
            channel = connection.channel()
            channel.confirm_delivery()
            queue = clients.private_queue(channel)
            while not self._over.wait(LOAD_PAUSE_SECONDS):
                body = os.urandom(LOAD_BYTES)
                channel.basic_publish("", queue, body, mandatory=True)
                same = channel.basic_get(queue, auto_ack=True)[2] == body
                self.counts["intact" if same else "changed"] += 1
            connection.close()
        except (pika.exceptions.AMQPError, OSError) as failure:
            self.failure = failure

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def carried(self):
        """Bytes of message bodies, there and back."""
        return 2 * LOAD_BYTES * sum(self.counts.values())

    @property
    def is_sound(self):
        return self.failure is None and self.counts["changed"] == 0 and self.counts["intact"] > 0


def live(leat, load, seconds):
    """Shows what leat carries, until SECONDS are over (0: for ever), Ctrl-C or a failure."""
    say(f"{LOAD_SESSIONS} applications now send and fetch a little all the time."
        + ("" if seconds else " Ctrl-C ends it."))
    begun = last = time.monotonic()
    before = 0
    period = 1 if ON_TERMINAL else PLAIN_LINE_SECONDS
    while load.failure is None and leat.process.poll() is None:
        left = seconds - (last - begun) if seconds else period
        if left <= 0:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            leat.process.wait(min(period, left))
            break
        sessions, now = leat.status()["sessions"], time.monotonic()
        carried = load.carried - before  # leat's own counts hold only sessions that have ended
        line = (f"{sessions} sessions   {carried / (now - last) / 1e6:.2f} MB/s   "
                f"{load.counts['intact']:,} messages intact, {load.counts['changed']} changed   "
                f"{now - begun:.0f} s")
        print(f"\r{line}\033[K" if ON_TERMINAL else line, end="" if ON_TERMINAL else "\n",
              flush=True)
        before, last = before + carried, now


def run(seconds):
    """Returns whether every message came back as it was sent."""
    build()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="leat-demo-"))
        with Step("Making a certificate authority and a certificate for localhost"):
            certs = certificates.Certs(directory)
        node = start_rabbitmq(stack)
        leat = start_leat(stack, certs, node)
        say(f"leat listens on amqps://127.0.0.1:{leat.port}, before the RabbitMQ on port "
            f"{node.port}.")
        context = certs.client_context()
        sound = show_exchange(leat, context)
        show_how_to_connect(leat, certs)
        load = Load(leat.port, context)
        try:
            live(leat, load, seconds)
        except KeyboardInterrupt:
            pass
        finally:
            load.stop()
            say()
        if load.failure:
            say(f"An application failed: {load.failure!r}")
        say(f"{load.counts['intact']:,} more messages came back as they were sent, "
            f"{load.counts['changed']} did not. Stopping leat and RabbitMQ.")
        return sound and load.is_sound


def main():
    parser = argparse.ArgumentParser(description="Shows leat before a RabbitMQ.")
    parser.add_argument("--seconds", type=float, default=0, help="end by itself; 0: at Ctrl-C")
    seconds = parser.parse_args().seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if run(seconds) else 1
    except KeyboardInterrupt:
        say("\nStopped before everything was shown.")
        return 130
    except (RuntimeError, AssertionError, OSError, pika.exceptions.AMQPError) as failure:
        say(f"\nThe demonstration failed: {failure!r}" if not str(failure)
            else f"\nThe demonstration failed: {failure}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
