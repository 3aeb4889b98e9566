# SPDX-License-Identifier: Apache-2.0
"""Frames of different sizes on the two sides: bodies are split, what can't be is refused."""
import os
import re
import struct

import pytest

import amqp_wire
import clients
from amqp_wire import Tune

SMALL, LARGE = 4096, 131072
OVERHEAD = 8
BODY_SIZE = 200_000


def publish(body, frame_max, channel=1):
    """A publish with BODY in frames of at most FRAME_MAX: a list of frames."""
    head = struct.pack(">HHQH", 60, 0, len(body), 0)
    size = frame_max - OVERHEAD
    parts = [body[at:at + size] for at in range(0, len(body), size)]
    return [amqp_wire.method(channel, "basic.publish", b"\0\0\0\0\0"),
            amqp_wire.frame(amqp_wire.CONTENT_HEADER, channel, head),
            *(amqp_wire.frame(amqp_wire.BODY, channel, part) for part in parts)]


class Taking:
    """A script that opens with TUNE and keeps the frames up to a body of SIZE bytes."""

    def __init__(self, tune, size):
        self.tune, self.size = tune, size

    def __call__(self, session):
        session.handshake(self.tune)
        frames, got = [], 0
        while got < self.size:
            frames.append(session.recv_frame())
            got += len(frames[-1].payload) if frames[-1].type == amqp_wire.BODY else 0
        session.received = frames
        session.send(amqp_wire.close_frame(200, "got it"))
        session.recv_to_end()


def through(leat, client, data, frame_max):
    """Sends DATA through an open session; returns once the broker has said that it got it."""
    client = client().connect()
    assert client.tune.frame_max == frame_max
    client.send(b"".join(data))
    assert client.take_close() == (200, "got it")
    leat.the_end("closed", by="broker")


@pytest.mark.parametrize("size", [SMALL - OVERHEAD, SMALL - OVERHEAD + 1, 2 * (SMALL - OVERHEAD),
                                  20_000, BODY_SIZE])
def test_R7_a_body_is_split_to_the_brokers_frames(leat_of_both_kinds, run_broker, size):
    """Who had agreed on larger frames than the broker was sent 501 for an ordinary message."""
    body = os.urandom(size)
    broker = run_broker(Taking(Tune(2047, SMALL, 0), size))
    leat, client = leat_of_both_kinds(broker)
    through(leat, client, publish(body, LARGE), LARGE)
    broker.wait_ended()
    frames = broker.sessions[0].received
    parts = [one.payload for one in frames if one.type == amqp_wire.BODY]
    assert b"".join(parts) == body
    assert max(map(len, parts)) <= SMALL - OVERHEAD
    assert [one.type for one in frames[:2]] == [amqp_wire.METHOD, amqp_wire.CONTENT_HEADER]
    assert all(one.channel == 1 for one in frames)


def test_a_body_in_small_frames_stays_as_it_is(plain_leat, run_broker):
    body = os.urandom(BODY_SIZE)
    broker = run_broker(amqp_wire.recording(Tune(2047, LARGE, 0)))
    leat = plain_leat(broker, more=["--tune.frame_max", SMALL])
    client = amqp_wire.Client(leat.port)
    client.start()
    assert client.tune_ok().frame_max == SMALL
    client.open()
    sent = b"".join(publish(body, SMALL))
    client.send(sent)
    client.close()
    broker.wait_ended()
    assert broker.sessions[0].received == sent


def wanting_at_least(frame_max, frames):
    """A broker that refuses a Tune-Ok with less than FRAME_MAX, as new ones do, and sends FRAMES
    as soon as the session is open; it keeps what comes."""
    def script(session):
        session.start()
        session.tune_and_open()
        if session.tune.frame_max < frame_max:
            session.send(amqp_wire.close_frame(530, "NOT_ALLOWED - frame_max is too low"))
        else:
            session.send(amqp_wire.OPEN_OK + b"".join(frames))
        session.received = session.recv_to_end()
    return script


def test_R35_a_client_of_small_frames_before_a_broker_that_refuses_them(leat_of_both_kinds,
                                                                        run_broker):
    """Clients that choose the least frame_max there is could not log in to new brokers."""
    body = os.urandom(20_000)
    broker = run_broker(wanting_at_least(8192, publish(body, 8192)))
    leat, client = leat_of_both_kinds(broker)
    client = client()
    client.start()
    client.tune_ok(Tune(2047, SMALL, 0))
    client.open()
    frames = [client.recv_frame() for _ in range(2)]
    while sum(len(one.payload) for one in frames[2:]) < len(body):
        frames.append(client.recv_frame())
    assert b"".join(one.payload for one in frames[2:]) == body
    assert max(len(one.payload) for one in frames) <= SMALL - OVERHEAD
    sent = b"".join(publish(body, SMALL))
    client.send(sent)
    client.close()
    leat.the_end("closed", by="client")
    broker.wait_ended()
    assert (broker.sessions[0].tune.frame_max, broker.sessions[0].received) == (8192, sent)


def read_frames(data):
    """The frames that DATA consists of."""
    cursor = amqp_wire.Cursor(data)
    while cursor.at < len(data):
        kind, channel, size = struct.unpack(">BHI", cursor.take(7))
        yield amqp_wire.Frame(kind, channel, cursor.take(size))
        assert cursor.take(1)[0] == amqp_wire.FRAME_END


def test_R8_contents_of_two_channels_and_one_that_breaks_off(leat_of_both_kinds, run_broker):
    """A broker got something else where the rest of a message was due, and ended all sessions."""
    broker = run_broker(amqp_wire.recording(Tune(2047, SMALL, 0)))
    leat, client = leat_of_both_kinds(broker)
    bodies = {1: os.urandom(BODY_SIZE), 2: os.urandom(BODY_SIZE)}
    one, two = (publish(body, 10_000, channel) for channel, body in bodies.items())
    stays, breaks_off = client().connect(), client()
    breaks_off.start()
    breaks_off.tune_ok()
    breaks_off.open()
    breaks_off.send(b"".join(publish(bodies[1], SMALL)[:5]))
    stays.send(b"".join(first + second for first, second in zip(one, two)))
    breaks_off.close()
    stays.close()
    leat.wait("closed", number=1)
    broker.wait_ended()
    received = [list(read_frames(session.received)) for session in broker.sessions]
    assert b"".join(frame.payload for frame in received[1][2:]) == bodies[1][:3 * 4088]
    for channel, body in bodies.items():
        frames = [frame for frame in received[0] if frame.channel == channel]
        assert [frame.type for frame in frames[:2]] == [amqp_wire.METHOD, amqp_wire.CONTENT_HEADER]
        assert {frame.type for frame in frames[2:]} == {amqp_wire.BODY}
        assert b"".join(frame.payload for frame in frames[2:]) == body


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("frame_max", [SMALL, 5000, LARGE])
def test_a_body_comes_back_from_rabbitmq(run_leat, rabbit, tls, frame_max, with_tls):
    leat = run_leat(rabbit, listen="amqps://127.0.0.1:0" if with_tls else "amqp://127.0.0.1:0",
                    more=["--tune.frame_max", frame_max])
    connection = clients.connect(leat.port, tls if with_tls else None)
    for size in (0, 1, frame_max - OVERHEAD, frame_max - OVERHEAD + 1, BODY_SIZE):
        body = os.urandom(size)
        assert clients.round_trip(connection, body) == body
    connection.close()


@pytest.mark.parametrize("kind, name", [(amqp_wire.METHOD, "method"),
                                        (amqp_wire.CONTENT_HEADER, "header")])
def test_what_can_not_be_split_is_refused(leat_of_both_kinds, run_broker, kind, name):
    broker = run_broker(amqp_wire.recording(Tune(2047, SMALL, 0)))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect()
    fitting = amqp_wire.frame(kind, 1, b"\0\x3c\0\x28" + bytes(SMALL - OVERHEAD - 4))
    client.send(fitting + amqp_wire.frame(kind, 1, bytes(4992)))
    code, text = client.take_close()
    assert code == 501
    assert re.match(f"FRAME_ERROR - {name} frame on channel 1 is 5000 bytes long, .* 4096", text)
    line = leat.the_end("closed", by="client", code=501)
    assert "5000" in line.fields["reason"] and "4096" in line.fields["reason"]
    broker.wait_ended()
    assert broker.sessions[0].received == fitting


@pytest.mark.parametrize("kind", [amqp_wire.METHOD, amqp_wire.BODY])
def test_a_frame_above_what_was_negotiated_is_refused(leat_of_both_kinds, run_broker, kind):
    broker = run_broker(amqp_wire.recording(Tune(2047, LARGE, 0)))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect()
    client.send(struct.pack(">BHI", kind, 1, 1_000_000) + bytes(1_000_001))
    code, text = client.take_close()
    assert code == 501
    assert text.startswith("FRAME_ERROR - ") and "1000008" in text and f"{LARGE}" in text
    leat.the_end("closed", by="client", code=501)
    broker.wait_ended()
    assert broker.sessions[0].received == b""


def test_a_brokers_frame_above_what_was_negotiated_ends_the_session(leat_of_both_kinds,
                                                                    run_broker):
    broker = run_broker(amqp_wire.recording(Tune(2047, SMALL, 0)))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect()
    broker.sessions[0].send(amqp_wire.frame(amqp_wire.METHOD, 1, bytes(9992)))
    code, text = client.take_close()
    assert code == 501
    assert text.startswith("FRAME_ERROR - ") and "10000" in text
    leat.the_end("closed", by="broker", code=501)
    broker.wait_ended()


def test_what_is_sent_right_behind_open_is_carried_too(leat_of_both_kinds, run_broker):
    broker = run_broker(amqp_wire.recording(Tune(2047, LARGE, 0)))
    leat, client = leat_of_both_kinds(broker)
    client = client()
    client.start()
    client.tune_ok()
    behind = b"".join(publish(os.urandom(BODY_SIZE), LARGE))
    client.send(amqp_wire.open_frame() + behind)
    client.expect("connection.open-ok")
    client.close()
    broker.wait_ended()
    assert broker.sessions[0].received == behind
