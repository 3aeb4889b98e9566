# SPDX-License-Identifier: Apache-2.0
"""Brokers that are lost, refuse, or break the protocol, and what the client is told then."""
import pytest

import amqp_wire
import clients
import process

LOOPBACK = "amqp://127.0.0.1:"
NO_BROKER = (320, "CONNECTION_FORCED - no broker can be reached")


def answer_to_open(leat, context):
    return amqp_wire.Client(leat.port, context).answer_to_open()


@pytest.mark.parametrize("script", [amqp_wire.resetting, amqp_wire.babbling,
                                    amqp_wire.dropping_after_start_ok(amqp_wire.CAPABILITIES)],
                         ids=["resets", "babbles", "drops"])
def test_a_broker_that_fails_in_the_handshake(run_leat, run_broker, tls, script):
    leat = run_leat(backend=f"{LOOPBACK}{run_broker(script).port}")
    assert answer_to_open(leat, tls) == NO_BROKER
    assert leat.wait("failed:").level == "warn"


def test_no_broker_listens(run_leat, tls):
    leat = run_leat(backend=f"{LOOPBACK}{process.free_ports(1)[0]}")
    assert answer_to_open(leat, tls) == NO_BROKER


def test_a_broker_that_asks_for_more_authentication(run_leat, run_broker, tls):
    leat = run_leat(backend=f"{LOOPBACK}{run_broker(amqp_wire.securing).port}")
    assert answer_to_open(leat, tls)[0] == 540


def test_an_old_broker_that_drops_a_wrong_login_is_taken_as_a_refusal(run_leat, run_broker, tls):
    old = run_broker(amqp_wire.dropping_after_start_ok({}))
    next_one = run_broker(amqp_wire.serving())
    leat = run_leat(backend=[f"{LOOPBACK}{old.port}", f"{LOOPBACK}{next_one.port}"])
    answers = [answer_to_open(leat, tls) for _ in range(2)]  # whichever is tried first
    opened = answers.count("opened")
    assert all(answer == "opened" or answer[0] == 403 for answer in answers), answers
    assert old.sessions and opened < 2
    assert len(next_one.sessions) == opened, "a refused password was tried again elsewhere"


@pytest.mark.parametrize("code, text", [(403, "ACCESS_REFUSED - no"), (530, "NOT_ALLOWED - no"),
                                        (402, "INVALID_PATH - no")])
def test_a_brokers_refusal_reaches_the_client_word_for_word(run_leat, run_broker, tls, code, text):
    leat = run_leat(backend=f"{LOOPBACK}{run_broker(amqp_wire.refusing(code, text)).port}")
    assert answer_to_open(leat, tls) == (code, text)


@pytest.mark.parametrize("code, text", [(320, "CONNECTION_FORCED - going"), (541, "INTERNAL_ERROR"),
                                        (530, "NOT_ALLOWED - node connection limit (1) is reached")])
def test_a_broker_that_can_not_take_it_is_passed_over(run_leat, run_broker, tls, code, text):
    first, second = run_broker(amqp_wire.refusing(code, text)), run_broker(amqp_wire.serving())
    leat = run_leat(backend=[f"{LOOPBACK}{first.port}", f"{LOOPBACK}{second.port}"])
    for _ in range(2):  # whichever is tried first
        amqp_wire.Client(leat.port, tls).connect().close_politely()
    assert first.sessions and len(second.sessions) == 2


def test_a_dead_broker_is_passed_over(run_leat, rabbit, tls):
    dead = process.free_ports(1)[0]
    leat = run_leat(backend=[f"{LOOPBACK}{dead}", f"{LOOPBACK}{rabbit.port}"])
    for _ in range(2):
        connection = clients.connect(leat.port, tls)
        assert clients.round_trip(connection, b"x") == b"x"
        connection.close()


def test_a_broker_lost_between_frames(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    broker.sessions[0].close()
    answer = amqp_wire.read_close(client.expect("connection.close"))
    assert answer == (320, "CONNECTION_FORCED - broker connection lost")
    client.send_method("connection.close-ok")
    client.recv_to_end()
    client.close()
    assert leat.wait("closed").fields["by"] == "broker"


def test_a_broker_lost_inside_a_frame_leaves_no_invented_bytes(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    part = amqp_wire.frame(amqp_wire.BODY, 1, b"x" * 1000)[:500]
    broker.sessions[0].send(part)
    broker.sessions[0].close()
    received = client.recv_to_end()
    client.close()
    assert part.startswith(received)


def test_a_broker_that_closes_twice_is_heard_once(run_leat, run_broker, tls):
    leat = run_leat(backend=f"{LOOPBACK}{run_broker(amqp_wire.closing_twice).port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    answer = amqp_wire.read_close(client.expect("connection.close"))
    assert answer == (320, "CONNECTION_FORCED - one")
    client.send_method("connection.close-ok")
    assert client.recv_to_end() == b""
    client.close()
    leat.wait("closed")


def test_a_broker_that_sends_no_frames_after_open(run_leat, run_broker, tls):
    leat = run_leat(backend=f"{LOOPBACK}{run_broker(amqp_wire.noisy_after_open).port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    client.recv_to_end()
    client.close()
    leat.wait("closed")


def test_a_client_lost_ends_the_brokers_side(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    client.reset()
    assert leat.wait("closed").fields["by"] == "client"
    broker.wait_ended()


def test_the_login_is_passed_on_and_named(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
    bare = {"capabilities": {}, "leat_client": "forged", "note": "kept"}
    client = amqp_wire.Client(leat.port, tls).connect(
        vhost="other", user="u", password="p", properties=bare)
    client.close_politely()
    session = broker.sessions[0]
    mechanism, response, properties = session.login
    assert (mechanism, response, session.vhost) == ("PLAIN", b"\0u\0p", "other")
    assert properties["note"] == "kept"
    assert properties["leat_client"].startswith("127.0.0.1:")
    assert properties["capabilities"] == {"authentication_failure_close": True}


def test_tune_is_never_above_what_the_broker_offers(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving(amqp_wire.Tune(100, 8192, 7)))
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect(heartbeat=60)
    client.close_politely()
    assert broker.sessions[0].tune == (100, 8192, 7)


def test_two_brokers_share_the_sessions(run_leat, rabbit, quiet_rabbit, tls):
    nodes = [rabbit, quiet_rabbit]
    leat = run_leat(backend=[f"{LOOPBACK}{node.port}" for node in nodes])
    for number in range(2):
        connection = clients.connect(leat.port, tls, name=f"shared {number}")
        assert clients.round_trip(connection, b"x") == b"x"
        connection.close()
    used = {leat.wait("opened", number=number).fields["backend"] for number in range(2)}
    assert used == {f"127.0.0.1:{node.port}" for node in nodes}
