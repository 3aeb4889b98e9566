# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ nodes that die, stop and come back, and clients that die: with pika, over TLS."""
import subprocess
import sys
import time

import pika.exceptions
import pytest

import clients
import flow
import process
from leat import BROKER_LOST

RETURN_SECONDS = 60

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
