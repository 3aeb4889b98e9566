# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ nodes that die, stop and come back, and clients that die: with pika, over TLS."""
import struct
import subprocess
import sys
import time

import pika.exceptions
import pytest

import amqp_wire
import clients
import flow
import process
from leat import BROKER_LOST

RETURN_SECONDS = 60
BODY_FRAME = 131072 - 8

PUBLISHER = """
import ssl, sys, pika
_, port, ca, name = sys.argv
connection = pika.BlockingConnection(pika.ConnectionParameters(
    "localhost", int(port), client_properties={"connection_name": name},
    ssl_options=pika.SSLOptions(ssl.create_default_context(cafile=ca), "localhost")))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 1}).method.queue
while True:
    channel.basic_publish("", queue, bytes(5_000_000))
    print("published", flush=True)
"""


@pytest.fixture
def pair(rabbit, quiet_rabbit):
    """Two nodes, which are both running again after the test."""
    yield rabbit, quiet_rabbit
    for node in (rabbit, quiet_rabbit):
        node.start_again()


@pytest.fixture
def leat(run_leat, pair):
    return run_leat(*pair)


def connect_and_find(leat, tls, pair):
    """A new session that works: its connection, its node, and the other one."""
    since = len(leat.lines)
    connection = clients.connect(leat.port, tls)
    assert clients.round_trip(connection, b"works") == b"works"
    backend = leat.wait("opened", since=since).fields["backend"]
    mine = next(node for node in pair if backend == f"127.0.0.1:{node.port}")
    return connection, mine, next(node for node in pair if node is not mine)


def expect_close(connection):
    """Waits until the session is closed; returns code and text."""
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as failure:
        connection.process_data_events(time_limit=clients.SECONDS)
        pytest.fail("the client was not told")
    return failure.value.reply_code, failure.value.reply_text


def come_back_to(node, leat, tls, pair):
    """Opens sessions until one is on NODE."""
    deadline = time.monotonic() + RETURN_SECONDS
    while time.monotonic() < deadline:
        connection, mine, _ = connect_and_find(leat, tls, pair)
        connection.close()
        if mine is node:
            return
    raise AssertionError("the node that works again gets no sessions")


def test_a_killed_node_is_left_for_the_other_and_found_again(leat, tls, pair):
    connection, mine, other = connect_and_find(leat, tls, pair)
    mine.kill()
    assert expect_close(connection) == BROKER_LOST
    line = leat.wait("closed")
    assert line.fields["by"] == "broker"
    for _ in range(2):  # whichever node has its turn
        connection, found, _ = connect_and_find(leat, tls, pair)
        assert found is other
        connection.close()
    assert leat.wait("failed:").fields["backend"] == f"127.0.0.1:{mine.port}"
    mine.start_again()
    come_back_to(mine, leat, tls, pair)
    assert leat.wait("works", "again").fields["backend"] == f"127.0.0.1:{mine.port}"


def test_a_node_that_stops_says_so_in_its_own_words(leat, tls, pair):
    connection, mine, other = connect_and_find(leat, tls, pair)
    mine.stop_node()
    code, text = expect_close(connection)
    assert code == 320
    assert text.startswith("CONNECTION_FORCED - broker forced connection closure")
    assert leat.wait("closed").fields["by"] == "broker"
    for _ in range(2):
        connection, found, _ = connect_and_find(leat, tls, pair)
        assert found is other
        connection.close()
    mine.start_again()
    come_back_to(mine, leat, tls, pair)


def test_a_client_killed_while_it_publishes(run_leat, rabbit, certs):
    leat = run_leat(rabbit)
    child = process.start([sys.executable, "-c", PUBLISHER, str(leat.port), str(certs.ca),
                           "killed-one"], stdout=subprocess.PIPE)
    try:
        for _ in range(3):
            assert child.stdout.readline() == b"published\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    leat.the_end("closed", by="client")
    status = flow.wait_status(leat, lambda now: now["closed"] == 1)
    assert (status["opened"], status["sessions"]) == (1, 0)
    ending = "killed-one, vhost: '/', user: 'guest'):"
    reason = rabbit.await_log(ending).split(ending)[1].splitlines()[1]
    assert "client unexpectedly closed TCP connection" in reason


def publish_and_get(client, body):
    """Publishes BODY to a queue of its own and asks for it; the delivery is left to the caller."""
    client.send_method("channel.open", amqp_wire.shortstr(""), channel=1)
    client.expect("channel.open-ok")
    client.send_method("queue.declare", b"\0\0" + amqp_wire.shortstr("") + b"\x04" +
                       amqp_wire.table({}), channel=1)
    queue = amqp_wire.Cursor(client.expect("queue.declare-ok").args).shortstr()
    client.send_method("basic.publish", b"\0\0" + amqp_wire.shortstr("") +
                       amqp_wire.shortstr(queue) + b"\0", channel=1)
    client.send(amqp_wire.frame(amqp_wire.CONTENT_HEADER, 1,
                                struct.pack(">HHQH", 60, 0, len(body), 0)))
    for at in range(0, len(body), BODY_FRAME):
        client.send(amqp_wire.frame(amqp_wire.BODY, 1, body[at:at + BODY_FRAME]))
    client.send_method("basic.get", b"\0\0" + amqp_wire.shortstr(queue) + b"\x01", channel=1)


def whole_frames(data):
    """The frames in DATA, and what is left over."""
    frames = []
    while len(data) >= 7 and len(data) >= (size := 8 + struct.unpack(">BHI", data[:7])[2]):
        frames.append(amqp_wire.Frame(data[0], int.from_bytes(data[1:3], "big"),
                                      data[7:size - 1]))
        assert data[size - 1] == 0xCE
        data = data[size:]
    return frames, data


def test_a_node_killed_inside_a_frame_leaves_it_cut(run_leat, pair, tls):
    leat = run_leat(pair[0])
    client = amqp_wire.Client(leat.port, tls, receive_buffer=4096).connect()
    publish_and_get(client, bytes(16_000_000))
    flow.wait_status(leat, lambda now: now["queued"] > 0)  # the client does not read
    pair[0].kill()
    frames, rest = whole_frames(client.recv_to_fin())
    client.close()
    names = [frame.name for frame in frames if frame.type == amqp_wire.METHOD]
    assert names[0] == "basic.get-ok"
    # Nothing stands in the place of what is missing of a frame, and a Close only behind a whole
    # one.
    assert ("connection.close" in names) == (rest == b"")
    assert not any(rest[7:]), "there is more in the cut frame than of the message, all zeros"
    assert sum(len(frame.payload) for frame in frames if frame.type == amqp_wire.BODY) < 16_000_000
    assert leat.wait("closed").fields["by"] == "broker"
