# SPDX-License-Identifier: Apache-2.0
"""Ends that have made other proxies spin or leak: after each of them leat is at rest, with as many
descriptors as before. Tests are named after the public reports that they come from."""
import os
import signal
import socket
import ssl
import subprocess
import sys

import pytest

import amqp_wire
import flow
import process
from leat import BROKER_LOST, NO_BROKER

SUPPORT = os.path.dirname(amqp_wire.__file__)

# A client as a program of its own, that can be killed. Says when its session is open.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import amqp_wire, certs, ssl
context = ssl.create_default_context(cafile=sys.argv[3])
client = amqp_wire.Client(int(sys.argv[2]), context).connect()
print("open", flush=True)
client.recv_to_end()
"""


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def start(run_leat, tls):
    """Starts a leat before BACKENDS. After the test it has to come to rest, with no more
    descriptors than after its first session."""
    started = []

    def start_one(*backends, more=()):
        leat = run_leat(*backends, more=["--timeouts.linger", "500ms", *more])
        amqp_wire.Client(leat.port, tls).connect().close()
        flow.wait_status(leat, lambda now: now["closed"] == 1 and now["connections"] == 0)
        started.append((leat, flow.descriptors(leat)))
        return leat

    yield start_one
    for leat, base in started:
        flow.wait_status(leat, lambda now: now["connections"] == 0)
        assert flow.at_rest(leat)["connections"] == 0
        assert flow.descriptors(leat) == base


@pytest.fixture
def leat(start, broker):
    return start(broker)


@pytest.fixture
def tls_session(start, run_broker, certs, tls):
    """A session with TLS on both sides: leat, the client, and the broker's bare socket."""
    broker = run_broker(amqp_wire.held(), certs.server_context())
    leat = start(f"amqps://127.0.0.1:{broker.port}", more=["--backend-ca", certs.ca])
    client = amqp_wire.Client(leat.port, tls).connect()
    yield leat, client, bare(broker.wait_sessions(2)[1])
    client.close()


def bare(leg):
    """The socket under LEG's TLS, which is not to say a word more."""
    return amqp_wire.Leg(socket.socket(fileno=leg.sock.detach()))


def client_hello(context):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    half = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    return outgoing.read()


def leave(peer, how):
    """Ends the connection without a word of TLS."""
    if how == "reset":
        peer.reset()
    else:
        peer.close()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R31_connect_and_close(leat, how):
    """Sockets of health checks that only connected piled up."""
    for _ in range(20):
        leave(amqp_wire.Client(leat.port), how)
    flow.wait_status(leat, lambda now: now["accepted"] == 21 and now["connections"] == 0)


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R39_a_client_gone_without_close_notify(leat, broker, tls, how):
    """A proxy read the end of a TLS connection again and again."""
    leave(bare(amqp_wire.Client(leat.port, tls).connect()), how)
    assert leat.wait("closed", number=1).fields["by"] == "client"
    broker.wait_ended()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R39_a_broker_gone_without_close_notify(tls_session, how):
    """A program that spoke to its broker over TLS took all of a core once the other end died."""
    leat, client, broker = tls_session
    leave(broker, how)
    assert amqp_wire.read_close(client.expect("connection.close")) == BROKER_LOST
    client.recv_to_end()
    client.close()
    assert leat.wait("closed", number=1).fields["by"] == "broker"


def test_R39_a_client_killed(leat, broker, certs):
    """The same, with a process that was killed."""
    program = process.start([sys.executable, "-c", PROGRAM, SUPPORT, str(leat.port),
                             str(certs.ca)], stdout=subprocess.PIPE)
    with program:
        assert program.stdout.readline() == b"open\n"
        program.send_signal(signal.SIGKILL)
    assert leat.wait("closed", number=1).fields["by"] == "client"
    broker.wait_ended()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R41_a_client_that_dies_in_the_tls_handshake(leat, tls, how):
    """A proxy took all of a core for a client that died in the handshake."""
    for size in (1, 5, 100):
        before = leat.status()["failed"]
        peer = amqp_wire.Client(leat.port)
        peer.send(client_hello(tls)[:size])
        flow.wait_status(leat, lambda now: now["handshakes"] == 1)
        leave(peer, how)
        flow.wait_status(leat, lambda now: now["failed"] > before)
        assert flow.at_rest(leat)["connections"] == 0, f"after {size} bytes"


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R52_a_client_that_dies_after_its_hello(leat, tls, how):
    """A handshake that was broken off was tried again and again."""
    peer = amqp_wire.Client(leat.port)
    peer.send(client_hello(tls))
    peer.recv_exactly(5)  # the server has answered
    leave(peer, how)
    flow.wait_status(leat, lambda now: now["failed"] == 1)


def test_R52_a_reset_right_behind_the_hello(leat, tls):
    """The same, if the end comes before the answer."""
    for _ in range(20):
        peer = amqp_wire.Client(leat.port)
        peer.send(client_hello(tls))
        peer.reset()
    flow.wait_status(leat, lambda now: now["accepted"] == 21 and now["connections"] == 0)


def test_R43_a_tls_client_ends_while_the_broker_lives_on(start, run_broker, tls):
    """A proxy took all of a core once a client had ended and the server had not."""
    broker = run_broker(amqp_wire.held())
    leat = start(broker)
    client = amqp_wire.Client(leat.port, tls).connect()
    client.sock.unwrap().close()  # close_notify each way
    assert leat.wait("closed", number=1).fields["by"] == "client"
    assert broker.wait_sessions(2)[1].recv_to_end() == b""


def test_R47_an_end_from_the_client_closes_both_legs(leat, broker, tls):
    """The client had gone; the server's connection stayed."""
    client = amqp_wire.Client(leat.port, tls).connect()
    socket.socket.shutdown(client.sock, socket.SHUT_WR)  # TLS does not hear of it, and reads on
    assert client.recv_to_end() == b""
    client.close()
    assert leat.wait("closed", number=1).fields["by"] == "client"
    broker.wait_ended()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_broker_gone_leaves_leat_at_rest(start, run_broker, tls, how):
    broker = run_broker(amqp_wire.held())
    leat = start(broker)
    client = amqp_wire.Client(leat.port, tls).connect()
    leave(broker.wait_sessions(2)[1], how)
    assert amqp_wire.read_close(client.expect("connection.close"))[0] == 320
    client.recv_to_end()
    client.close()
    leat.wait("closed", number=1)


def test_R32_a_bad_record_ends_the_session(leat, broker, tls):
    """A TLS error in the midst of a session left a connection behind that nobody used."""
    raw = bare(amqp_wire.Client(leat.port, tls).connect())
    raw.send(b"\x17\x03\x03\x00\x40" + os.urandom(64))
    raw.recv_to_end()
    raw.close()
    line = leat.wait("closed", number=1)
    assert (line.level, line.fields["by"]) == ("warn", "client")
    assert "TLS" in line.fields["reason"]
    broker.wait_ended()


def test_R32_a_brokers_bad_record_ends_the_session(tls_session):
    """The same from the other side."""
    leat, client, broker = tls_session
    broker.send(b"\x17\x03\x03\x00\x40" + os.urandom(64))
    assert amqp_wire.read_close(client.expect("connection.close"))[0] == 320
    client.recv_to_end()
    client.close()
    broker.recv_to_end()
    broker.close()
    line = leat.wait("closed", number=1)
    assert line.fields["by"] == "broker" and "TLS" in line.fields["reason"]


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R45_clients_that_leave_as_their_broker_answers(start, broker, dead_port, tls, how):
    """After a reload, clients that left just as the second server took the connection stayed half
    closed, and took all of a core."""
    leat = start(dead_port, broker)
    for _ in range(50):
        leave(amqp_wire.Client(leat.port, tls).ask(), how)
    leat.process.send_signal(signal.SIGHUP)
    leat.wait("reloaded:")
    for _ in range(50):
        leave(amqp_wire.Client(leat.port, tls).ask(), how)
    amqp_wire.Client(leat.port, tls).connect().close()
    flow.wait_status(leat, lambda now: now["accepted"] == 102 and now["connections"] == 0)
    broker.wait_ended()


def test_R53_a_broker_that_ends_inside_its_first_answer(start, run_broker, tls):
    """A client read on and on behind the end of a reply that was too short."""
    turns = iter([amqp_wire.serving(amqp_wire.NO_HEARTBEAT)])

    def short(session):
        session.recv_exactly(8)
        session.send(amqp_wire.method(0, "connection.start", b"\0\x09")[:5])

    broker = run_broker(lambda session: next(turns, short)(session))
    leat = start(broker, more=["--timeouts.handshake", "1h"])
    for _ in range(5):
        assert amqp_wire.Client(leat.port, tls).answer_to_open() == NO_BROKER
    flow.wait_status(leat, lambda now: now["refused"] == 5)


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R60_clients_that_leave_as_their_broker_refuses(start, run_broker, tls, how):
    """Each client that gave up while the server refused the connection cost memory for ever."""
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    broker.stop()
    for _ in range(50):
        leave(amqp_wire.Client(leat.port, tls).ask(), how)
    flow.wait_status(leat, lambda now: now["accepted"] == 51 and now["connections"] == 0)
