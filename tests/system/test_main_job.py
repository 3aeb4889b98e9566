# SPDX-License-Identifier: Apache-2.0
"""What leat is for: applications reach RabbitMQ through it, over TLS, and notice nothing."""
import concurrent.futures
import os
import re

import pika
import pytest

import amqp_wire
import clients
import flow
import leat as leats
import rabbitmq

APP = {"user": "app", "password": rabbitmq.USERS["app"], "vhost": "other"}


def refusal(failure):
    """The code and text of the broker's Close, from pika's exception for it."""
    found = re.search(r"\((\d{3})\) ['\"](.*)['\"]", str(failure.value))
    assert found, f"no Close reached the client: {failure.value!r}"
    return int(found[1]), found[2]


def test_messages_are_confirmed_consumed_and_acknowledged(leat, tls):
    connection = clients.connect(leat.port, tls)
    channel = connection.channel()
    channel.confirm_delivery()
    queue = clients.private_queue(channel)
    bodies = [b"message %d" % number for number in range(200)]
    for body in bodies:
        channel.basic_publish("", queue, body, mandatory=True)
    received = []
    for delivered, _, body in channel.consume(queue, inactivity_timeout=20):
        assert delivered, "a delivery is missing"
        received.append(body)
        channel.basic_ack(delivered.delivery_tag)
        if len(received) == len(bodies):
            break
    channel.cancel()
    left = channel.queue_declare(queue, passive=True).method.message_count
    connection.close()
    assert received == bodies
    assert left == 0


def test_an_unroutable_message_comes_back(leat, tls):
    connection = clients.connect(leat.port, tls)
    channel = connection.channel()
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "no-such-queue", b"?", mandatory=True)
    connection.close()


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 20_000_000])
def test_bytes_arrive_as_they_were_sent(leat, tls, size):
    body = os.urandom(size)
    connection = clients.connect(leat.port, tls)
    received = clients.round_trip(connection, body)
    connection.close()
    assert received == body, "the message was changed on its way"


def test_a_channel_error_ends_the_channel_only(leat, tls):
    connection = clients.connect(leat.port, tls)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as failure:
        connection.channel().queue_declare("no-such-queue", passive=True)
    assert failure.value.reply_code == 404
    assert clients.round_trip(connection, b"still here") == b"still here"
    connection.close()


def test_a_wrong_password_is_refused_in_the_brokers_words(leat, tls):
    with pytest.raises(pika.exceptions.AMQPConnectionError) as failure:
        clients.connect(leat.port, tls, user="app", password="wrong-one", vhost="other")
    code, text = refusal(failure)
    assert code == 403
    assert text.startswith("ACCESS_REFUSED - Login was refused using authentication mechanism "
                           "PLAIN")
    line = leat.wait("refused")
    assert line.level == "warn"
    assert "403" in line.text
    assert "wrong-one" not in leat.text()


def test_an_unknown_vhost_is_refused_in_the_brokers_words(leat, tls):
    with pytest.raises(pika.exceptions.AMQPConnectionError) as failure:
        clients.connect(leat.port, tls, vhost="nowhere")
    code, text = refusal(failure)
    assert code == 530
    assert text == "NOT_ALLOWED - vhost nowhere not found"
    assert "530" in leat.wait("refused").text


def test_an_orderly_close_is_clean_on_both_sides(leat, tls, rabbit):
    connection = clients.connect(leat.port, tls, name="orderly")
    clients.round_trip(connection, b"x")
    connection.close()
    line = leat.wait("closed")
    assert (line.level, line.fields["by"]) == ("info", "client")
    log = rabbit.await_log("orderly, vhost: '/', user: 'guest')")
    closing = [entry for entry in log.splitlines() if "closing" in entry and "orderly" in entry]
    assert closing and all("[info]" in entry for entry in closing), closing


def test_a_hundred_clients_at_once(leat, tls):
    def work(number):
        body = os.urandom(1000) + b"%d" % number
        connection = clients.connect(leat.port, tls)
        received = clients.round_trip(connection, body)
        connection.close()
        return received == body

    with concurrent.futures.ThreadPoolExecutor(100) as threads:
        assert all(threads.map(work, range(100)))
    leat.wait("closed", number=99)
    status = flow.wait_status(leat, lambda now: now["closed"] == 100)
    assert (status["opened"], status["sessions"]) == (100, 0)


def test_a_hundred_open_sessions_stand_side_by_side(leat, tls):
    connections = [clients.connect(leat.port, tls) for _ in range(100)]
    assert leat.status()["sessions"] == 100
    assert all(clients.round_trip(one, b"x") == b"x" for one in connections)
    for one in connections:
        one.close()


def test_the_log_tells_who_was_there_and_how_much_was_carried(leat, tls, rabbit):
    connection = clients.connect(leat.port, tls, **APP)
    clients.round_trip(connection, bytes(50_000))
    connection.close()
    opened, closed = leat.wait("opened"), leat.wait("closed")
    backend = f"127.0.0.1:{rabbit.port}"
    wanted = {"user": "app", "vhost": "other", "backend": backend, "tls": "TLSv1.3"}
    for line in (opened, closed):
        assert wanted.items() <= line.fields.items()
        assert line.fields["peer"].startswith("127.0.0.1:")
        assert line.fields["cipher"].startswith("TLS_")
        assert line.fields["session"] == opened.fields["session"]
    assert opened.fields["backend_tls"] == "none"
    for direction in ("in", "out"):
        assert 50_000 < int(closed.fields[f"bytes_{direction}"]) < 60_000
        assert 5 < int(closed.fields[f"frames_{direction}"]) < 30
    assert 0 < float(closed.fields["seconds"]) < 60


def test_a_plain_listener_stands_beside_a_tls_one(run_leat, rabbit, tls):
    leat = run_leat(rabbit, listen=["amqp://127.0.0.1:0", "amqps://127.0.0.1:0"])
    by_scheme = {line.fields["on"].split(":")[0]: int(line.fields["on"].rsplit(":", 1)[1])
                 for line in leat.find("listening")}
    for scheme, context in (("amqp", None), ("amqps", tls)):
        connection = clients.connect(by_scheme[scheme], context)
        assert clients.round_trip(connection, b"x") == b"x"
        connection.close()
    assert leat.wait("opened", number=0).fields["tls"] == "none"
    assert leat.wait("opened", number=1).fields["tls"] == "TLSv1.3"


def test_the_trace_names_every_frame_and_no_secret(run_leat, rabbit, tls):
    leat = run_leat(rabbit, more=["--trace"])
    connection = clients.connect(leat.port, tls, **APP)
    clients.round_trip(connection, b"a payload nobody shall read in the log")
    connection.close()
    leat.wait("closed")
    published = leat.wait("client->broker", "basic.publish")
    assert published.level == "trace"
    assert published.fields["channel"] == "1"
    assert int(published.fields["size"]) > 0
    assert leat.find("broker->client", "basic.get-ok")
    assert not leat.find("broker->client", "basic.publish")
    log = "\n".join(line.text for line in leat.lines)
    assert APP["password"] not in log
    assert "nobody shall read" not in log


def test_a_log_line_is_parsed_with_its_quotes():
    line = leats.parse('2026-11-30T22:41:04.123Z info session=17 opened user="a \\"b" vhost="/"')
    assert (line.level, line.words) == ("info", ["opened"])
    assert line.fields == {"session": "17", "user": 'a \\"b', "vhost": "/"}


def test_clients_are_told_of_the_broker_once_it_was_seen(leat, tls):
    first = amqp_wire.Client(leat.port, tls)
    first.send(amqp_wire.HEADER)
    assert b"RabbitMQ" not in first.expect("connection.start").payload
    first.close()
    clients.connect(leat.port, tls).close()
    second = amqp_wire.Client(leat.port, tls)
    second.send(amqp_wire.HEADER)
    start = second.expect("connection.start").payload
    second.close()
    assert b"RabbitMQ" in start and b"cluster_name" in start


def test_the_trace_shows_the_handshakes_and_the_frames_of_leat(run_leat, rabbit, tls):
    leat = run_leat(rabbit, more=["--trace"])
    connection = clients.connect(leat.port, tls, **APP)
    connection.close()
    leat.wait("closed")
    frames = [(line.words[0], line.words[1])
              for line in leat.find() if line.level == "trace"]
    for expected in [("leat->client", "connection.start"), ("client->leat", "connection.start-ok"),
                     ("leat->client", "connection.tune"), ("client->leat", "connection.tune-ok"),
                     ("client->leat", "connection.open"), ("broker->leat", "connection.start"),
                     ("leat->broker", "connection.start-ok"), ("broker->leat", "connection.tune"),
                     ("leat->broker", "connection.tune-ok"), ("leat->broker", "connection.open"),
                     ("broker->leat", "connection.open-ok"), ("leat->client", "connection.open-ok"),
                     ("client->broker", "connection.close"),
                     ("broker->client", "connection.close-ok")]:
        assert frames.count(expected) == 1, (expected, frames)
    assert APP["password"] not in leat.text()


def test_the_log_level_trace_tells_what_each_turn_did(run_leat, rabbit, tls):
    leat = run_leat(rabbit, more=["--log-level", "trace"])
    connection = clients.connect(leat.port, tls, **APP)
    clients.round_trip(connection, bytes(40_000))
    connection.close()
    leat.wait("closed")
    turns = leat.find("turn")
    assert {line.words[1] for line in turns} == {"client->leat", "broker->leat", "client->broker",
                                                 "broker->client"}
    for line in turns:
        for name in ("received", "records", "decrypted", "inside", "sent", "queued"):
            assert line.fields[name].isdigit(), line.text
        assert line.fields["waits"]
    sealed = [line for line in turns if line.words[1].startswith("client")]
    assert sum(int(line.fields["decrypted"]) for line in sealed) > 40_000
    assert all(int(line.fields["records"]) > 0 for line in sealed
               if int(line.fields["decrypted"]) > 0 and line.fields["inside"] == "0")
    assert APP["password"] not in leat.text()
