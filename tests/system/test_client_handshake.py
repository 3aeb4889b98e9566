# SPDX-License-Identifier: Apache-2.0
"""Clients that get the handshake wrong are told what is wrong, and no broker hears of them."""
import re
import struct

import pytest

import amqp_wire
from amqp_wire import Tune

OFFER = amqp_wire.DEFAULT_TUNE


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving())


@pytest.fixture
def leat(plain_leat, broker):
    return plain_leat(broker)


@pytest.fixture
def client(leat, broker):
    """A client for a handshake that leat refuses."""
    one = amqp_wire.Client(leat.port)
    yield one
    one.close()
    assert not broker.sessions, "a broker was bothered"


def refusal(client, leat):
    """The only Close, which ends the connection; the log says the same."""
    code, text = client.take_close()
    line = leat.wait(by="leat")
    assert text[:40] in line.fields["reason"]
    return code, text


@pytest.mark.parametrize("tune, text", [
    (OFFER._replace(channel_max=2048), "channel_max = 2048 is higher than .* 2047"),
    (OFFER._replace(channel_max=0), "channel_max = 0"),
    (OFFER._replace(frame_max=131073), "frame_max = 131073 is higher than .* 131072"),
    (OFFER._replace(frame_max=0), "frame_max = 0"),
    (OFFER._replace(frame_max=4095), "frame_max = 4095 is lower than .* 4096"),
    (OFFER._replace(frame_max=0xFFFFFFFF), "frame_max = 4294967295 is higher"),
])
def test_a_tune_ok_out_of_bounds(client, leat, tune, text):
    client.start()
    assert client.tune_ok(tune) == OFFER
    code, said = refusal(client, leat)
    assert code == 530
    assert said.startswith("NOT_ALLOWED - negotiated ")
    assert re.search(text, said), said


@pytest.mark.parametrize("tune", [Tune(1, 4096, 0), Tune(2047, 131072, 65535),
                                  Tune(2046, 4097, 61)])
def test_a_tune_ok_within_bounds(leat, tune):
    client = amqp_wire.Client(leat.port)
    client.start()
    client.tune_ok(tune)
    client.open()
    client.close_politely()


def test_the_offer_can_be_set(plain_leat, broker):
    leat = plain_leat(broker, more=["--tune.frame_max", "64KiB", "--tune.channel_max", "100",
                                    "--tune.heartbeat", "0"])
    client = amqp_wire.Client(leat.port)
    client.start()
    assert client.tune_ok() == (100, 65536, 0)
    client.open()
    client.close_politely()
    assert broker.sessions[0].tune == (100, 65536, 60)


def test_the_offer_follows_what_the_brokers_can_take(plain_leat, run_broker):
    leat = plain_leat(run_broker(amqp_wire.serving(Tune(300, 8192, 60))))
    offers = []
    for _ in range(2):
        client = amqp_wire.Client(leat.port)
        client.start()
        offers.append(client.tune_ok())
        client.open()
        client.close_politely()
    assert offers == [OFFER, (300, 8192, 60)]


def test_tune_ok_is_never_above_what_the_broker_offers(plain_leat, run_broker):
    broker = run_broker(amqp_wire.serving(Tune(100, 8192, 7)))
    leat = plain_leat(broker)
    amqp_wire.Client(leat.port).connect(heartbeat=60).close_politely()
    assert broker.sessions[0].tune == (100, 8192, 7)


def test_a_frame_too_large_before_open(client, leat):
    client.greet()
    client.send(struct.pack(">BHI", amqp_wire.METHOD, 0, 8192) + b"x" * 8193)
    code, text = refusal(client, leat)
    assert code == 501
    assert text.startswith("FRAME_ERROR - frame of 8200 bytes")
    assert "8192" in text, "the limit is not named"
    leat.the_end("refused", by="leat", code=501)


def test_the_largest_frame_before_open_can_be_set(plain_leat, broker):
    leat = plain_leat(broker, more=["--limits.initial_frame", "64KiB"])
    properties = {"token": "x" * 60000}
    amqp_wire.Client(leat.port).connect(properties=properties).close_politely()
    assert broker.sessions[0].login[2]["token"] == properties["token"]


def test_too_many_frames_before_open(client, leat):
    client.start()
    client.send(amqp_wire.frame(amqp_wire.HEARTBEAT, 0) * 16)
    client.expect("connection.tune")
    code, text = refusal(client, leat)
    assert (code, text) == (530, "NOT_ALLOWED - more than 16 frames before connection.open")


@pytest.mark.parametrize("data, code, words", [
    (amqp_wire.open_frame(), 503, "COMMAND_INVALID - .*Start-Ok.*connection.open"),
    (amqp_wire.method(1, "channel.open", b"\0"), 505, "UNEXPECTED_FRAME - .*channel 1"),
    (amqp_wire.frame(amqp_wire.BODY, 0, b"x"), 505, "UNEXPECTED_FRAME - .*type 3"),
    (amqp_wire.frame(amqp_wire.METHOD, 0, b"\0\x0a"), 502, "SYNTAX_ERROR - "),
    (amqp_wire.method(0, "connection.start-ok", b"\0\0\0\x05abc"), 502, "SYNTAX_ERROR - "),
    (amqp_wire.frame(7, 0, b""), 501, "FRAME_ERROR - .*type 7"),
    (amqp_wire.frame(amqp_wire.METHOD, 0, b"\0\x0a\0\x0b")[:-1] + b"\0", 501, "FRAME_ERROR - "),
], ids=["open", "channel", "body", "short", "start-ok", "type", "end-octet"])
def test_something_else_instead_of_start_ok(client, leat, data, code, words):
    client.greet()
    client.send(data)
    said = refusal(client, leat)
    assert said[0] == code
    assert re.search(words, said[1]), said


@pytest.mark.parametrize("response", [b"", b"\0user", b"user\0password", b"\0\0password",
                                      b"\0user\0pass\0word"])
def test_a_login_that_is_no_plain_one(client, leat, response):
    client.greet()
    client.send_method("connection.start-ok", amqp_wire.start_ok_args(response=response))
    assert refusal(client, leat)[0] in (403, 502)
    assert "pass" not in leat.text()


def test_a_client_may_close_before_open(client, leat):
    client.start()
    client.expect("connection.tune")
    client.send(amqp_wire.close_frame(200, "changed my mind"))
    assert client.recv_to_fin() == amqp_wire.CLOSE_OK
    assert leat.the_end("failed", by="client").level == "info"


@pytest.mark.parametrize("first, awaited", [(b"AMQP", "the protocol header"),
                                            (amqp_wire.HEADER, "Start-Ok")])
def test_a_client_that_does_not_go_on(plain_leat, broker, first, awaited):
    leat = plain_leat(broker, more=["--timeouts.handshake", "500ms"])
    client = amqp_wire.Client(leat.port)
    client.send(first)
    client.recv_to_fin()
    client.close()
    reason = leat.the_end("failed", by="client").fields["reason"]
    assert f"did not send {awaited} in time" in reason
    assert "timeouts.handshake" in reason


def test_a_loopback_user_is_let_in_from_loopback(plain_leat, broker):
    leat = plain_leat(broker, more=["--loopback_users", "guest,app"])
    for user in ("guest", "app", "other"):
        assert amqp_wire.Client(leat.port).answer_to_open(user=user) == "opened"
