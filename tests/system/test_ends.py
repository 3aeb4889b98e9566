# SPDX-License-Identifier: Apache-2.0
"""How open sessions end: what the client is told, what the broker gets, what the log says."""
import re
import socket
import threading

import pytest

import amqp_wire
import flow
from leat import BROKER_LOST

PUBLISH = amqp_wire.method(1, "basic.publish", b"\0\0" + amqp_wire.shortstr("") * 2 + b"\0")
BODY = amqp_wire.frame(amqp_wire.BODY, 1, bytes(range(256)) * 8)
ONE_SECOND = amqp_wire.DEFAULT_TUNE._replace(heartbeat=1)


@pytest.fixture
def recorded(leat_of_both_kinds, run_broker):
    """An open session: leat, client, the session of a broker that records, and this broker."""
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect()
    yield leat, client, broker.sessions[0], broker
    client.close()


# The broker is lost.

@pytest.mark.parametrize("part", [b"", BODY, BODY + BODY[:5]],
                         ids=["nothing", "a-frame", "inside-a-head"])
def test_broker_lost_between_frames(recorded, part):
    leat, client, session, broker = recorded
    session.send(part)
    session.sock.shutdown(socket.SHUT_WR)
    whole = part[:len(part) // len(BODY) * len(BODY)]
    assert client.recv_to_fin() == whole + amqp_wire.close_frame(*BROKER_LOST)
    line = leat.the_end("closed", by="broker", code=320)
    assert "dropped the connection" in line.fields["reason"]
    broker.wait_ended()
    assert session.received == b""


def test_broker_lost_by_reset(leat_of_both_kinds, run_broker):
    gate = threading.Event()

    def resetting_later(session):
        session.handshake(amqp_wire.NO_HEARTBEAT)
        assert gate.wait(amqp_wire.SECONDS)
        session.reset()

    leat, client = leat_of_both_kinds(run_broker(resetting_later))
    client = client().connect()
    gate.set()
    assert client.recv_to_fin() == amqp_wire.close_frame(*BROKER_LOST)
    client.close()
    assert "reset" in leat.the_end("closed", by="broker").fields["reason"]


@pytest.mark.parametrize("cut", [7, 8, 500, len(BODY) - 1])
def test_broker_lost_inside_a_frame(recorded, cut):
    leat, client, session, broker = recorded
    session.send(BODY + BODY[:cut])
    session.sock.shutdown(socket.SHUT_WR)
    assert client.recv_to_fin() == BODY + BODY[:cut], "bytes were invented or lost"
    leat.the_end("closed", by="broker")
    broker.wait_ended()


# The client is lost.

@pytest.mark.parametrize("part", [b"", PUBLISH, PUBLISH + BODY], ids=["nothing", "one", "two"])
def test_client_lost_between_frames(recorded, part):
    leat, client, session, broker = recorded
    client.send(part)
    client.close()
    line = leat.the_end("closed", by="client")
    assert re.search(r"dropped the connection|without a TLS close_notify", line.fields["reason"])
    assert "code" not in line.fields
    broker.wait_ended()
    assert session.received == part


@pytest.mark.parametrize("cut", [7, 8, 500, len(BODY) - 1])
def test_client_lost_inside_a_frame(recorded, cut):
    leat, client, session, broker = recorded
    client.send(PUBLISH + BODY[:cut])
    client.close()
    leat.the_end("closed", by="client")
    broker.wait_ended()
    assert session.received == PUBLISH + BODY[:cut]


def test_client_lost_by_reset(recorded):
    leat, client, session, broker = recorded
    client.reset()
    assert "reset" in leat.the_end("closed", by="client").fields["reason"]
    broker.wait_ended()
    assert session.received == b""


def test_client_lost_behind_bytes_that_the_broker_has_not_taken(plain_leat, run_broker):
    gate = threading.Event()
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT, gate))
    leat = plain_leat(broker)
    client = amqp_wire.Client(leat.port).connect()
    sent = client.send_what_fits(BODY * 32000)
    client.close()
    gate.set()
    broker.wait_ended()
    assert len(sent) > len(BODY) * 100
    assert broker.sessions[0].received == sent
    leat.the_end("closed", by="client")


# Heartbeats.

def echoing_heartbeats(session):
    """Keeps the names of all frames but heartbeats, which it answers."""
    session.received = []
    session.handshake()
    while True:
        received = session.recv_frame()
        if received.type == amqp_wire.HEARTBEAT:
            session.send(amqp_wire.frame(amqp_wire.HEARTBEAT, 0))
        else:
            session.received.append(received.name)


def test_the_clients_heartbeat_dead(leat_of_both_kinds, run_broker):
    broker = run_broker(echoing_heartbeats)
    leat, client = leat_of_both_kinds(broker)
    deaf = client().connect(heartbeat=1)
    deaf.send(PUBLISH)
    beats = deaf.recv_to_fin()
    assert beats and beats == amqp_wire.frame(amqp_wire.HEARTBEAT, 0) * (len(beats) // 8)
    line = leat.the_end("closed", by="client")
    assert line.fields["reason"] == "nothing came for 2 s, twice its heartbeat"
    assert "code" not in line.fields
    broker.wait_ended()
    assert broker.sessions[0].received == ["basic.publish"]
    deaf.close()


def test_the_brokers_heartbeat_dead(leat_of_both_kinds, run_broker):
    broker = run_broker(amqp_wire.recording(ONE_SECOND))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect(heartbeat=0)
    assert client.recv_to_fin() == amqp_wire.close_frame(*BROKER_LOST)
    client.close()
    line = leat.the_end("closed", by="broker", code=320)
    assert line.fields["reason"] == "nothing came for 2 s, twice its heartbeat"
    broker.wait_ended()
    beats = broker.sessions[0].received
    assert beats and beats == amqp_wire.frame(amqp_wire.HEARTBEAT, 0) * (len(beats) // 8)


def test_R11_a_broker_that_stands_still_with_bytes_on_their_way_to_it(leat_of_both_kinds,
                                                                       run_broker):
    """Clients of a broker whose packets got lost hung for days."""
    broker = run_broker(amqp_wire.held(ONE_SECOND))
    leat, client = leat_of_both_kinds(broker)
    client = client().connect(heartbeat=0)
    flow.send_until_queued(leat, client)
    assert client.recv_to_fin() == amqp_wire.close_frame(*BROKER_LOST)
    client.close()
    line = leat.the_end("closed", by="broker", code=320)
    assert line.fields["reason"] == "nothing came for 2 s, twice its heartbeat"
    # The broker has neither read nor left, and yet is not waited for.
    assert flow.wait_status(leat, lambda now: now["connections"] == 0)["queued"] == 0


# Close.

def test_a_clients_close_that_the_broker_does_not_answer(leat_of_both_kinds, run_broker):
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat, client = leat_of_both_kinds(broker, more=["--timeouts.close", "1s"])
    client = client().connect()
    client.send(amqp_wire.close_frame(200, "bye"))
    assert client.recv_to_fin() == amqp_wire.CLOSE_OK
    client.close()
    line = leat.the_end("closed", by="client")
    assert line.fields["reason"].startswith("it closed with 200 bye; no Close-Ok came: ")
    broker.wait_ended()
    assert broker.sessions[0].received == amqp_wire.close_frame(200, "bye")


def test_a_brokers_close_that_the_client_does_not_answer(leat_of_both_kinds, run_broker):
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat, client = leat_of_both_kinds(broker, more=["--timeouts.close", "1s"])
    client = client().connect()
    broker.sessions[0].send(amqp_wire.close_frame(320, "CONNECTION_FORCED - down"))
    assert client.recv_to_fin() == amqp_wire.close_frame(320, "CONNECTION_FORCED - down")
    client.close()
    line = leat.the_end("closed", by="broker")
    assert "no Close-Ok came" in line.fields["reason"]
    broker.wait_ended()
    assert broker.sessions[0].received == amqp_wire.CLOSE_OK


def test_a_broker_lost_instead_of_answering_a_close(recorded):
    leat, client, session, _ = recorded
    client.send(amqp_wire.close_frame(200, "bye"))
    session.sock.shutdown(socket.SHUT_WR)
    assert client.recv_to_fin() == amqp_wire.CLOSE_OK
    assert "no Close-Ok came" in leat.the_end("closed", by="client").fields["reason"]


def test_a_client_that_goes_without_answering_a_close(recorded):
    leat, client, session, broker = recorded
    session.send(amqp_wire.close_frame(541, "INTERNAL_ERROR - oops"))
    assert amqp_wire.read_close(client.recv_frame()) == (541, "INTERNAL_ERROR - oops")
    client.close()
    broker.wait_ended()
    assert session.received == amqp_wire.CLOSE_OK
    line = leat.the_end("closed", by="broker")
    assert line.fields["reason"].startswith("it closed with 541 INTERNAL_ERROR - oops; ")


def test_R29_a_brokers_close_is_passed_on_with_its_answer(recorded):
    """Clients whose frames a broker found corrupt did not hear what was wrong."""
    leat, client, session, broker = recorded
    session.send(BODY + amqp_wire.close_frame(501, "FRAME_ERROR - \u00fc"))
    assert client.recv_frame().type == amqp_wire.BODY
    assert amqp_wire.read_close(client.recv_frame()) == (501, "FRAME_ERROR - \u00fc")
    client.send(PUBLISH + amqp_wire.CLOSE_OK)
    assert client.recv_to_fin() == b""
    broker.wait_ended()
    assert session.received == PUBLISH + amqp_wire.CLOSE_OK
    line = leat.the_end("closed", by="broker")
    assert line.fields["reason"].startswith("it closed with 501 FRAME_ERROR - ")


@pytest.mark.parametrize("corrupt, passed_on, text", [
    (BODY[:-1] + b"\0", BODY[:-1], "ends with octet 0x00"),
    (amqp_wire.frame(9, 1, b"x"), b"", "unknown type 9"),
], ids=["end-octet", "type"])
def test_R29_a_clients_corrupt_frame_is_named(recorded, corrupt, passed_on, text):
    """Clients were cut off for a corrupt frame without being told."""
    leat, client, session, broker = recorded
    client.send(PUBLISH + corrupt)
    code, said = client.take_close()
    assert code == 501 and said.startswith("FRAME_ERROR - ") and text in said, said
    leat.the_end("closed", by="client", code=501)
    broker.wait_ended()
    assert session.received == PUBLISH + passed_on


def test_both_close_at_the_same_time(recorded):
    leat, client, session, broker = recorded
    session.send(amqp_wire.close_frame(320, "CONNECTION_FORCED - mine"))
    assert amqp_wire.read_close(client.recv_frame())[0] == 320
    client.send(amqp_wire.close_frame(200, "mine too"))
    client.send(amqp_wire.CLOSE_OK)
    client.recv_to_fin()
    broker.wait_ended()
    assert session.received == amqp_wire.close_frame(200, "mine too") + amqp_wire.CLOSE_OK
    leat.the_end("closed", by="broker", reason="it closed with 320 CONNECTION_FORCED - mine")


def test_a_broker_that_closes_twice_is_heard_once(recorded):
    leat, client, session, _ = recorded
    session.send(amqp_wire.close_frame(320, "CONNECTION_FORCED - one") * 2)
    assert client.take_close() == (320, "CONNECTION_FORCED - one")
    leat.the_end("closed", by="broker")


def test_a_broker_that_sends_no_frames_after_open(recorded):
    leat, client, session, _ = recorded
    session.send(b"\xff" * 64)
    code, text = client.take_close()
    assert code == 501 and text.startswith("FRAME_ERROR - ")
    leat.the_end("closed", by="broker", code=501)


def test_noise_after_a_close_brings_no_second_close(plain_leat, run_broker):
    def closing(session):
        session.handshake(amqp_wire.NO_HEARTBEAT)
        session.send(amqp_wire.close_frame(320, "CONNECTION_FORCED - going"))
        session.recv_to_end()

    leat = plain_leat(run_broker(closing))
    client = amqp_wire.Client(leat.port).connect()
    code, _ = amqp_wire.read_close(client.expect("connection.close"))
    client.send(b"\xff" * 64)
    assert code == 320
    assert client.recv_to_end() == b"", "a second Close came"
    client.close()
    assert "320" in leat.the_end("closed", by="broker").fields["reason"]
