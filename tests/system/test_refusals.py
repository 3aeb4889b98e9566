# SPDX-License-Identifier: Apache-2.0
"""Sessions that never open: what the client is told, what the broker gets, what the log says."""
import threading
import time

import pytest

import amqp_wire
from leat import BROKER_LOST, NO_BROKER

BODY = amqp_wire.frame(amqp_wire.BODY, 1, bytes(range(256)) * 8)


# The broker's Close in the handshake.

@pytest.mark.parametrize("instead_of, code, text", [
    ("tune", 403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."),
    ("open-ok", 403, "ACCESS_REFUSED - no"),
    ("open-ok", 530, "NOT_ALLOWED - vhost nowhere not found"),
    ("open-ok", 530, "NOT_ALLOWED - access to vhost '/' refused for user 'x': user limit (1)"),
    ("open-ok", 402, "INVALID_PATH - b\u00fccher"),
    ("tune", 504, ""),
    ("open-ok", 999, "x" * 255),
    ("open-ok", 0, "no code"),
])
def test_a_brokers_close_in_the_handshake_is_passed_on(plain_leat, run_broker,
                                                              instead_of, code, text):
    broker = run_broker(amqp_wire.refusing(code, text, instead_of))
    other = run_broker(amqp_wire.serving())
    leat = plain_leat(broker, other)
    assert amqp_wire.Client(leat.port).answer_to_open() == (code, text)
    line = leat.the_end("refused", by="broker", code=code)
    assert line.fields["backend"] == f"127.0.0.1:{broker.port}"
    broker.wait_ended()
    assert broker.sessions[0].received == amqp_wire.CLOSE_OK
    assert not other.sessions, "another broker was asked too"


# Denied by leat.

@pytest.mark.parametrize("mechanism", ["EXTERNAL", "ANONYMOUS", "plain"])
def test_authentication_denied_by_leat(plain_leat, run_broker, mechanism):
    broker = run_broker(amqp_wire.serving())
    leat = plain_leat(broker)
    client = amqp_wire.Client(leat.port)
    client.greet()
    client.send_method("connection.start-ok", amqp_wire.start_ok_args(
        mechanism=mechanism, response=""))
    code, text = client.take_close()
    assert code == 403 and text.startswith("ACCESS_REFUSED - ")
    assert mechanism in text
    leat.the_end("refused", by="leat", code=403)
    assert not broker.sessions


# Losses in the handshake.

def dropping_after_start_ok(capabilities):
    """Says nothing about a login that it does not like, as old brokers do."""
    def script(session):
        session.start(capabilities=capabilities)
        session.close()
    return script


def resetting_after_start_ok(session):
    session.start(capabilities={"authentication_failure_close": False})
    session.reset()


@pytest.mark.parametrize("script", [dropping_after_start_ok({}),
                                    dropping_after_start_ok({"basic.nack": True}),
                                    resetting_after_start_ok], ids=["bare", "drop", "reset"])
def test_a_loss_after_the_login_is_a_refusal_if_the_broker_can_not_say_so(plain_leat, run_broker,
                                                                          script):
    old = run_broker(script)
    other = run_broker(amqp_wire.serving())
    leat = plain_leat(old, other)
    code, text = amqp_wire.Client(leat.port).answer_to_open(password="not-this-one")
    assert code == 403 and text.startswith("ACCESS_REFUSED - ")
    leat.the_end("refused", by="broker", code=403)
    assert not other.sessions, "the password was tried on the next broker"
    assert "not-this-one" not in leat.text()


def test_a_loss_after_the_login_is_a_failure_if_the_broker_could_say_so(plain_leat, run_broker):
    new = run_broker(dropping_after_start_ok({"authentication_failure_close": True}))
    other = run_broker(amqp_wire.serving())
    leat = plain_leat(new, other)
    assert amqp_wire.Client(leat.port).answer_to_open() == "opened"
    assert leat.wait("opened").fields["backend"] == f"127.0.0.1:{other.port}"


def test_a_broker_that_asks_for_a_challenge(plain_leat, run_broker):
    asking, other = run_broker(amqp_wire.securing), run_broker(amqp_wire.serving())
    leat = plain_leat(asking, other)
    code, text = amqp_wire.Client(leat.port).answer_to_open()
    assert code == 540 and text.startswith("NOT_IMPLEMENTED - ")
    leat.the_end("refused", by="broker", code=540)
    asking.wait_ended()


# The client is lost.

def test_client_lost_while_a_broker_is_sought(plain_leat, run_broker):
    broker = run_broker(amqp_wire.silent)
    leat = plain_leat(broker)
    client = amqp_wire.Client(leat.port).ask()
    broker.wait_sessions(1)
    client.close()
    leat.the_end("failed", by="client")
    broker.wait_ended()


# Heartbeats run from Tune-Ok on.

def client_with_heartbeat(leat):
    """A client that has sent Tune-Ok with a heartbeat of 1 s."""
    client = amqp_wire.Client(leat.port)
    client.start()
    client.tune_ok(amqp_wire.DEFAULT_TUNE._replace(heartbeat=1))
    return client


def test_a_client_gets_heartbeats_before_it_opens(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.serving()), more=["--timeouts.handshake", "3s"])
    client = client_with_heartbeat(leat)
    client.expect("heartbeat")
    client.open()
    client.close_politely()


def test_a_client_gets_heartbeats_while_a_broker_is_sought(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.silent), more=["--timeouts.handshake", "3s"])
    client = client_with_heartbeat(leat)
    client.send(amqp_wire.open_frame())
    for _ in range(3):  # it is silent itself, but nobody is listening to it now
        client.expect("heartbeat")
    assert amqp_wire.read_close(client.expect("connection.close")) == NO_BROKER
    client.close()
    assert leat.wait("refused").fields["by"] == "leat"


def test_a_broker_gets_heartbeats_before_it_opens(plain_leat, run_broker):
    def slow(session):
        session.start()
        session.tune_and_open(amqp_wire.DEFAULT_TUNE._replace(heartbeat=1))
        session.expect("heartbeat")
        session.send(amqp_wire.OPEN_OK)
        session.recv_to_end()

    leat = plain_leat(run_broker(slow), more=["--timeouts.handshake", "3s"])
    assert amqp_wire.Client(leat.port).answer_to_open() == "opened"


# What comes together.

def client_that_sends(leat, data):
    """A client that sends DATA, in one piece, behind its Tune-Ok."""
    client = amqp_wire.Client(leat.port)
    client.start()
    client.tune_ok()
    client.send(data)
    return client


def test_open_and_close_in_one_breath(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.serving()))
    client = client_that_sends(leat, amqp_wire.open_frame() + amqp_wire.close_frame(200, "bye"))
    assert client.recv_to_fin() == amqp_wire.OPEN_OK + amqp_wire.CLOSE_OK
    client.close()
    leat.the_end("closed", by="client")


@pytest.mark.parametrize("more", [BODY + amqp_wire.close_frame(320, "CONNECTION_FORCED - down"),
                                  BODY], ids=["close", "end"])
def test_what_a_broker_sends_right_behind_open_ok_is_carried_too(plain_leat, run_broker, more):
    def hasty(session):
        session.start()
        session.tune_and_open()
        session.send(amqp_wire.OPEN_OK + more)

    leat = plain_leat(run_broker(hasty))
    client = client_that_sends(leat, amqp_wire.open_frame())
    lost = amqp_wire.close_frame(*BROKER_LOST)
    assert client.recv_to_fin() == amqp_wire.OPEN_OK + (more + lost if more == BODY else more)
    client.close()
    leat.the_end("closed", by="broker")


# Refusals linger.

def test_a_refusal_is_read_by_a_client_that_is_still_sending(plain_leat, run_broker):
    gate = threading.Event()

    def failing_late(session):
        assert gate.wait(amqp_wire.SECONDS)
        session.reset()

    leat = plain_leat(run_broker(failing_late))
    client = amqp_wire.Client(leat.port).ask()
    sent = client.send_what_fits(BODY * 500)
    gate.set()
    client.send((BODY * 500)[len(sent):])
    assert client.recv_to_fin() == amqp_wire.close_frame(*NO_BROKER)
    client.send(amqp_wire.CLOSE_OK)
    client.close()


def test_a_wrong_handshake_is_answered_to_a_client_that_is_still_sending(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.serving()))
    client = client_that_sends(leat, BODY * 5000)
    closing = client.recv_to_fin()
    assert closing.startswith(amqp_wire.close_frame(505, "UNEXPECTED_FRAME")[:4])
    client.close()
    assert "UNEXPECTED_FRAME" in leat.wait(by="leat").fields["reason"]


def test_a_refusal_is_read_through_tls_too(leat_of_both_kinds, run_broker):
    leat, client = leat_of_both_kinds(run_broker(amqp_wire.resetting))
    client = client()
    client.start()
    client.tune_ok()
    client.send(amqp_wire.open_frame() + BODY * 500)
    assert client.recv_to_fin() == amqp_wire.close_frame(*NO_BROKER)
    client.send(amqp_wire.CLOSE_OK)
    client.close()
    leat.the_end("refused", by="leat", code=320)


def test_lingering_ends_by_itself(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.resetting), more=["--timeouts.linger", "500ms"])
    client = amqp_wire.Client(leat.port).ask()
    assert client.recv_to_fin() == amqp_wire.close_frame(*NO_BROKER)
    deadline = time.monotonic() + amqp_wire.SECONDS
    with pytest.raises(ConnectionError):  # once leat has closed, sending meets a reset
        while time.monotonic() < deadline:
            client.send(BODY)
    client.close()
