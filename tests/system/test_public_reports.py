# SPDX-License-Identifier: Apache-2.0
"""Public reports about other proxies that concern a session at work; tests carry their numbers."""
import collections
import concurrent.futures
import struct
import threading
import time
import types

import pytest

import amqp_wire
import clients
import flow
import leat as leats
import rabbitmq

HEARTBEAT = 1
WORK_SECONDS = 3 * HEARTBEAT
STEP_SECONDS = 0.2
BEAT = amqp_wire.frame(amqp_wire.HEARTBEAT, 0)
DATA = amqp_wire.frame(amqp_wire.BODY, 1, b"some data")


class Ear(threading.Thread):
    """Receives frames from LEG to its end; notes which came and the longest silence."""

    def __init__(self, leg):
        super().__init__(daemon=True)
        self.leg, self.names, self.silence = leg, collections.Counter(), 0
        self.start()

    def run(self):
        last = time.monotonic()
        try:
            while True:
                self.names[self.leg.recv_frame().name] += 1
                now = time.monotonic()
                self.silence, last = max(self.silence, now - last), now
        except (EOFError, OSError):
            pass


def say(leg, data):
    """Sends DATA every STEP_SECONDS for WORK_SECONDS."""
    for _ in range(int(WORK_SECONDS / STEP_SECONDS)):
        leg.send(data)
        flow.pause(STEP_SECONDS)


def quiet_consumer(client, broker):
    """Deliveries flow down; from the client, which wants no heartbeats, comes nothing."""
    ear = Ear(broker)
    say(broker, DATA)
    return ear


def steady_publisher(client, broker):
    """The client publishes; the broker sends only its heartbeats."""
    ear = Ear(client)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for done in (threads.submit(say, client, DATA), threads.submit(say, broker, BEAT)):
            done.result()
    return ear


@pytest.fixture(scope="module")
def work():
    """What each side heard in sessions that worked side by side."""
    broker = amqp_wire.Broker(amqp_wire.held(amqp_wire.DEFAULT_TUNE._replace(heartbeat=HEARTBEAT)))
    leat = leats.Leat("amqp://127.0.0.1:0", f"amqp://127.0.0.1:{broker.port}")
    ends = []
    for number, heartbeat in enumerate((0, HEARTBEAT)):
        client = amqp_wire.Client(leat.port).connect(heartbeat=heartbeat)
        ends.append((client, broker.wait_sessions(number + 1)[number]))
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(play, *pair)
                for play, pair in zip((quiet_consumer, steady_publisher), ends)]
    seen = types.SimpleNamespace(closed=leat.find("closed"), ears=[run.result() for run in runs])
    for client, _ in ends:
        client.close()
    broker.stop()
    leat.stop()
    return seen


def test_R1_the_broker_gets_heartbeats_whatever_flows_down(work):
    """A consumer that only listened was dropped by its broker."""
    ear = work.ears[0]
    assert ear.names["heartbeat"] >= WORK_SECONDS / HEARTBEAT
    assert ear.silence < 2 * HEARTBEAT


def test_R2_a_client_that_publishes_hears_something_in_time(work):
    """A client with much to say missed the proxy's heartbeats, and left."""
    ear = work.ears[1]
    assert ear.names["heartbeat"] >= WORK_SECONDS / HEARTBEAT
    assert ear.silence < 2 * HEARTBEAT


def test_R3_frames_of_data_count_as_signs_of_life(work):
    """Clients were dropped for want of heartbeats, though they sent data."""
    assert work.closed == []


def send_in_two(leg, frames):
    """Sends FRAMES, and the last of them in two parts, with more than a heartbeat's time between
    them."""
    data = b"".join(frames)
    cut = len(data) - len(frames[-1]) // 2
    leg.send(data[:cut])
    flow.pause(HEARTBEAT + STEP_SECONDS)
    leg.send(data[cut:])


def data_frames(leg, count):
    """The first COUNT frames that are no heartbeats, as they came."""
    received = []
    while len(received) < count:
        one = leg.recv_frame()
        if one.type != amqp_wire.HEARTBEAT:
            received.append(amqp_wire.frame(*one))
    return received


def test_R6_no_frame_stands_inside_another(leat_of_both_kinds, run_broker):
    """Under load a broker found other bytes where a frame had to end: there were two writers."""
    tune = amqp_wire.DEFAULT_TUNE._replace(heartbeat=HEARTBEAT)
    broker = run_broker(amqp_wire.held(tune))
    _, client = leat_of_both_kinds(broker)
    client = client().connect(heartbeat=HEARTBEAT)
    legs = (client, broker.wait_sessions(1)[0])
    frames = [amqp_wire.frame(amqp_wire.BODY, 1 + n % 5, b"event %d " % n * 10)
              for n in range(10_000)]
    for source, target in (legs, legs[::-1]):
        ear = concurrent.futures.ThreadPoolExecutor(1)
        with ear:
            heard = ear.submit(data_frames, target, len(frames))
            send_in_two(source, frames)
            assert heard.result() == frames
    client.close()


@pytest.fixture
def session(run_leat, run_broker, tls):
    """One session over TLS, left to the test."""
    broker = run_broker(amqp_wire.held())
    leat = run_leat(broker, more=["--workers", "1"])
    client = amqp_wire.Client(leat.port, tls).connect()
    yield types.SimpleNamespace(leat=leat, client=client, broker=broker.wait_sessions(1)[0])
    client.close()


def test_R17_frames_that_come_together_leave_together(session):
    """Acks were sent one by one, or waited for the kernel; work slowed down."""
    count = 1000
    acks = b"".join(amqp_wire.frame(amqp_wire.BODY, 1, b"ack %9d" % n) for n in range(count))
    before = session.leat.status()
    session.client.send(acks)
    assert session.broker.recv_exactly(len(acks)) == acks
    assert session.leat.status()["sends"] - before["sends"] <= 10


def test_R21_get_on_an_empty_queue_is_answered_each_time(run_leat, rabbit, tls):
    """Who asked an empty queue for a message waited for ever."""
    leat = run_leat(rabbit)
    with clients.connect(leat.port, tls) as connection:
        channel = connection.channel()
        queue = clients.private_queue(channel)
        assert [channel.basic_get(queue)[0] for _ in range(50)] == [None] * 50


def handshake():
    """All that a client says until its session is open, not waiting for any answer."""
    properties = {"product": "wire", "capabilities": amqp_wire.CAPABILITIES}
    start_ok = amqp_wire.start_ok_args(amqp_wire.fields(properties))
    return (amqp_wire.HEADER + amqp_wire.method(0, "connection.start-ok", start_ok)
            + amqp_wire.method(0, "connection.tune-ok", b"\x07\xff\x00\x02\x00\x00\x00\x00")
            + amqp_wire.open_frame())


def blocked_publisher(connection):
    """Publishes through CONNECTION; returns once the client has been told that it is blocked."""
    told = []
    connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
    connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
    channel = connection.channel()
    channel.basic_publish("", "nobody's", b"one too many")
    await_word(connection, told, "blocked")
    return told


def await_word(connection, told, word):
    deadline = time.monotonic() + clients.SECONDS
    while word not in told:
        assert time.monotonic() < deadline, f"the client was not told that it is {word}"
        connection.process_data_events(time_limit=0.1)


def test_R10_clients_are_told_that_they_are_blocked(run_leat, rabbit, tls):
    """Publishers, above all those that came later, did not hear of the broker's memory alarm."""
    leat = run_leat(rabbit)
    with clients.connect(leat.port, tls) as early:
        rabbit.control("set_vm_memory_high_watermark", "0.00001")
        try:
            told = [blocked_publisher(early)]
            late = clients.connect(leat.port, tls)
            told.append(blocked_publisher(late))
        finally:
            rabbit.control("set_vm_memory_high_watermark", "absolute", rabbitmq.MEMORY)
        for connection, words in zip((early, late), told):
            await_word(connection, words, "unblocked")
        late.close()


def test_R25_acks_for_a_channel_that_the_broker_has_closed(run_leat, rabbit, tls):
    """Acks that crossed the broker's Close of their channel ended the whole connection."""
    leat = run_leat(rabbit)
    client = amqp_wire.Client(leat.port, tls).connect()
    for channel in (1, 2):
        client.send_method("channel.open", amqp_wire.shortstr(""), channel)
        client.expect("channel.open-ok")
    passive = b"\0\0" + amqp_wire.shortstr("no such queue") + b"\x01" + amqp_wire.table({})
    ack = amqp_wire.frame(amqp_wire.METHOD, 1, struct.pack(">HHQB", 60, 80, 1, 0))
    client.send(amqp_wire.method(1, "queue.declare", passive) + ack * 100)
    closed = client.expect("channel.close")
    assert (closed.channel, closed.args[:2]) == (1, b"\x01\x94")
    client.send(ack * 100)
    client.send_method("channel.close-ok", channel=1)
    client.send_method("channel.close", b"\0\xc8\0\0\0\0\0", channel=2)
    assert client.expect("channel.close-ok").channel == 2
    client.close_politely()


def test_R29_rabbitmqs_words_on_a_corrupt_frame(run_leat, rabbit, tls):
    """Clients that sent frames out of place saw only the end of the connection."""
    leat = run_leat(rabbit)
    client = amqp_wire.Client(leat.port, tls).connect()
    client.send_method("channel.open", amqp_wire.shortstr(""), 1)
    client.expect("channel.open-ok")
    client.send(DATA)
    code, text = client.take_close()
    assert (code, text[:19]) == (505, "UNEXPECTED_FRAME - ")
    leat.the_end("closed", by="broker")


@pytest.mark.parametrize("step", [1, 7, 1_000_000])
def test_R28_the_handshake_in_pieces_and_as_one(leat_of_both_kinds, run_broker, step):
    """A server hung when the protocol header and Open came in one segment."""
    broker = run_broker(amqp_wire.held())
    _, client = leat_of_both_kinds(broker)
    client = client()
    said = handshake() + DATA
    for at in range(0, len(said), step):
        client.send(said[at:at + step])
    for name in ("connection.start", "connection.tune", "connection.open-ok"):
        client.expect(name)
    assert broker.wait_sessions(1)[0].recv_frame().payload == b"some data"
    client.close()
