# SPDX-License-Identifier: Apache-2.0
"""Streams of body frames that are compared by their digest, and leat's state as its counters and
its descriptors tell it."""
import hashlib
import os
import threading

import amqp_wire

SECONDS = 20
REST_SECONDS = 0.5  # leat is at rest if nothing happens for so long, five ticks of its timers
POLL_SECONDS = 0.02
PAYLOAD = 131072 - 8  # fills the frame size that leat offers
RANDOM = os.urandom(PAYLOAD)


def body_frames(size, payload=PAYLOAD):
    """Body frames of SIZE bytes in all, no two alike."""
    for at in range(0, size, payload):
        data = at.to_bytes(8, "big") + RANDOM
        yield amqp_wire.frame(amqp_wire.BODY, 1, data[:min(payload, size - at)])


def digest(frames):
    """How a stream of whole frames is compared."""
    total = hashlib.sha256()
    for one in frames:
        total.update(one)
    return total.hexdigest()


class Pump(threading.Thread):
    """Sends SIZE bytes of body frames through LEG, which nobody else writes to or, over TLS, reads
    from meanwhile."""

    def __init__(self, leg, size):
        super().__init__(daemon=True)
        self.leg, self.size, self.failure = leg, size, None
        self.start()

    def run(self):
        try:
            for one in body_frames(self.size):
                self.leg.send(one)
        except OSError as failure:
            self.failure = failure

    def finish(self):
        """Waits until all is sent; returns the digest."""
        self.join(SECONDS)
        assert not self.is_alive(), "sending does not come to its end"
        assert not self.failure, f"sending failed: {self.failure}"
        return digest(body_frames(self.size))


def take(leg, size):
    """Receives body frames of SIZE bytes, passing over heartbeats; returns their digest."""
    total, left = hashlib.sha256(), size
    while left > 0:
        received = leg.recv_frame()
        if received.type == amqp_wire.HEARTBEAT:
            continue
        assert received.type == amqp_wire.BODY, f"{received.name} came with {left} bytes to go"
        total.update(amqp_wire.frame(received.type, received.channel, received.payload))
        left -= len(received.payload)
    return total.hexdigest()


def pause(seconds):
    threading.Event().wait(seconds)


def await_true(condition, seconds=SECONDS):
    """Waits until CONDITION() is true."""
    for _ in range(int(seconds / POLL_SECONDS)):
        if condition():
            return
        pause(POLL_SECONDS)
    raise AssertionError("what is waited for did not come")


def wait_status(leat, condition, seconds=SECONDS):
    """Asks leat for its counters until CONDITION(status) holds; returns the status."""
    for _ in range(int(seconds / POLL_SECONDS)):
        status = leat.status()
        if condition(status):
            return status
        pause(POLL_SECONDS)
    raise AssertionError(f"what is waited for did not come; the last status: {status}")


def turns(status):
    """How often leat's workers have come back from waiting."""
    return status["wakeups"] + status["polls"]


def at_rest(leat, tries=24):
    """Waits until no worker has done anything for REST_SECONDS. Returns the status."""
    before = leat.status()
    for _ in range(tries):
        pause(REST_SECONDS)
        now = leat.status()
        if turns(now) == turns(before):
            return now
        grown, before = turns(now) - turns(before), now
    raise AssertionError(f"leat does not come to rest: {grown} turns in {REST_SECONDS} s, {now}")


def descriptors(leat):
    return len(os.listdir(f"/proc/{leat.process.pid}/fd"))


def send_until_queued(leat, leg, rounds=400):
    """Sends frames that nobody takes until leat holds back more than before, and a few more, which
    stay in front of leat. Returns how many bytes they carry, and their digest."""
    sent, before = [], leat.status()["queued"]
    for one in body_frames(rounds * PAYLOAD):
        leg.send(one)
        sent.append(one)
        if leat.status()["queued"] > before:
            break
    assert len(sent) < rounds, "leat never holds anything back"
    more = amqp_wire.frame(amqp_wire.BODY, 1, b"the last" * 500)
    leg.send(more)
    sent.append(more)
    return sum(len(one) - 8 for one in sent), digest(sent)
