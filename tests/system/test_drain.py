# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: no new connections, time for sessions to end by themselves, then a Close for each,
spread over time and never inside a frame; what a client still has to say reaches its broker; the
exit status is 0 in any case."""
import concurrent.futures
import contextlib
import itertools
import signal
import struct
import time

import pytest

import amqp_wire
import clients
import flow

GOING = (320, "CONNECTION_FORCED - the proxy is shutting down")
SOON = ["--drain.close_after", "0s", "--drain.close_until", "0s"]
LATE = ["--drain.close_after", "1h", "--drain.close_until", "1h", "--drain.end", "1h"]


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.held())


@pytest.fixture
def start(plain_leat, broker):
    def start_one(*more):
        return plain_leat(broker, more=more)

    return start_one


def terminate(leat):
    """The first SIGTERM; returns once it has been heard."""
    leat.process.terminate()
    leat.wait("draining:")


def answer_as_broker(session):
    """Takes the Close that ends the session, answers and leaves. Returns what came before it."""
    before = []
    while (received := session.recv_frame()).name != "connection.close":
        before.append(received)
    assert amqp_wire.read_close(received)[0] == 200
    session.send(amqp_wire.CLOSE_OK)
    rest = session.recv_to_end()
    session.close()
    assert rest == b"", "something comes after the Close"
    return before


def test_without_sessions_it_ends_at_once(start):
    leat = start(*LATE)
    leat.process.terminate()
    assert leat.end() == 0


def test_a_session_may_end_by_itself(run_leat, run_broker, tls):
    leat = run_leat(run_broker(amqp_wire.serving()), more=LATE)
    client = amqp_wire.Client(leat.port, tls).connect()
    terminate(leat)
    client.close_politely()
    assert leat.end() == 0
    assert leat.wait("closed").fields["by"] == "client"


def test_listeners_are_closed_at_once(start, broker):
    leat = start(*LATE)
    client = amqp_wire.Client(leat.port).connect()
    terminate(leat)
    # The workers hear of it within their next turn, not in the same instant.
    for _ in range(100):
        try:
            amqp_wire.Client(leat.port).close()
        except ConnectionRefusedError:
            break
        flow.pause(flow.POLL_SECONDS)
    else:
        pytest.fail("connections are still taken in while leat drains")
    client.send(amqp_wire.frame(amqp_wire.BODY, 1, b"still carried"))
    assert broker.sessions[0].recv_frame().payload == b"still carried"
    client.close()
    broker.sessions[0].close()
    assert leat.end() == 0


def test_what_a_client_sends_before_its_close_ok_reaches_the_broker(start, broker):
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port).connect()
    last_words = [amqp_wire.frame(amqp_wire.BODY, 1, b"published %d" % number)
                  for number in range(50)]
    terminate(leat)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        heard = threads.submit(answer_as_broker, broker.sessions[0])
        assert client.take_close(b"".join(last_words)) == GOING
        frames = heard.result()
    assert [one.payload for one in frames] == [b"published %d" % n for n in range(50)]
    assert leat.end() == 0
    line = leat.wait("closed")
    assert (line.level, line.fields["by"]) == ("info", "leat")
    assert leat.find("drained:")


def test_a_client_whose_close_crosses_leats_ends_the_session_once(start, broker):
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port).connect()
    terminate(leat)
    assert amqp_wire.read_close(client.expect("connection.close")) == GOING
    client.send(amqp_wire.close_frame(200, "bye") + amqp_wire.CLOSE_OK)
    assert answer_as_broker(broker.sessions[0]) == []
    client.expect("connection.close-ok")
    assert client.recv_to_end() == b""
    client.close()
    assert leat.end() == 0


def test_a_broker_that_closes_meanwhile_is_answered(start, broker):
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port).connect()
    terminate(leat)
    assert amqp_wire.read_close(client.expect("connection.close")) == GOING
    session = broker.sessions[0]
    session.send(amqp_wire.close_frame(320, "CONNECTION_FORCED - too"))
    session.expect("connection.close-ok")
    session.close()
    client.send(amqp_wire.CLOSE_OK)
    assert client.recv_to_end() == b""
    client.close()
    assert leat.end() == 0


def test_closes_are_spread_over_time(start, broker):
    count = 10
    leat = start("--workers", "1", "--log-level", "debug", "--drain.close_after", "500ms",
                 "--drain.close_until", "2500ms", "--drain.end", "1h")
    opened = [amqp_wire.Client(leat.port).connect() for _ in range(count)]
    begun = time.monotonic()
    terminate(leat)
    assert amqp_wire.read_close(opened[0].expect("connection.close")) == GOING
    assert time.monotonic() - begun >= 0.5, "the first came before drain.close_after"
    for client in opened[1:]:
        assert amqp_wire.read_close(client.expect("connection.close")) == GOING
    # Leat's own clock, which does not depend on how soon we are woken.
    times = {line.text.split()[0] for line in leat.find(state="closing")}
    assert len(times) >= count / 2, "the Closes are sent all at once"
    for client, session in zip(opened, broker.sessions):
        client.send(amqp_wire.CLOSE_OK)
        answer_as_broker(session)
        client.close()
    assert leat.end() == 0


def test_a_session_that_never_answers_is_cut_and_named(start, broker):
    leat = start(*SOON, "--drain.end", "1s")
    client = amqp_wire.Client(leat.port).connect()
    number = leat.wait("opened").fields["session"]
    terminate(leat)
    assert amqp_wire.read_close(client.expect("connection.close")) == GOING
    client.recv_to_end()
    broker.sessions[0].recv_to_end()
    client.close()
    assert leat.end() == 0
    assert leat.find("draining", "too", "long")[0].level == "warn"
    line = leat.wait("closed", session=number)
    assert line.fields["by"] == "leat"


def test_a_client_that_still_logs_in_is_told(start):
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port)
    client.start()
    client.expect("connection.tune")
    terminate(leat)
    assert amqp_wire.read_close(client.recv_frame())[0] == 320
    client.close()
    assert leat.end() == 0


def test_a_second_signal_stops_at_once(start, broker):
    leat = start(*LATE)
    client = amqp_wire.Client(leat.port).connect()
    terminate(leat)
    leat.process.terminate()
    assert leat.end() == 0
    client.recv_to_end()
    broker.sessions[0].recv_to_end()
    client.close()
    assert leat.wait("closed").fields["by"] == "leat"


def test_no_close_stands_inside_a_frame(start, broker):
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port).connect()
    between = amqp_wire.Client(leat.port).connect()
    whole = next(flow.body_frames(flow.PAYLOAD))
    broker.sessions[0].send(whole[:70_000])
    assert client.recv_exactly(50_000) == whole[:50_000]
    terminate(leat)
    # The other session has got its Close; this one has had the same time.
    assert amqp_wire.read_close(between.expect("connection.close")) == GOING
    between.close()
    broker.sessions[0].send(whole[70_000:])
    assert client.recv_exactly(len(whole) - 50_000) == whole[50_000:]
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        heard = threads.submit(answer_as_broker, broker.sessions[0])
        assert client.take_close() == GOING
        assert heard.result() == []
    broker.sessions[1].close()
    assert leat.end() == 0


@pytest.mark.parametrize("reader", ["client", "broker"])
def test_a_stalled_session_gets_all_before_the_end(start, broker, reader):
    """What is queued at SIGTERM is delivered, then the Close."""
    leat = start(*SOON)
    client = amqp_wire.Client(leat.port).connect()
    session = broker.sessions[0]
    source, target = (session, client) if reader == "client" else (client, session)
    size, digest = flow.send_until_queued(leat, source)
    flow.at_rest(leat)
    terminate(leat)
    if reader == "broker":
        assert amqp_wire.read_close(client.expect("connection.close")) == GOING
        client.send(amqp_wire.CLOSE_OK)
        assert flow.take(session, size) == digest
        assert answer_as_broker(session) == []
    else:
        total = 0
        while (received := client.recv_frame()).type == amqp_wire.BODY:
            total += len(received.payload)
        assert amqp_wire.read_close(received) == GOING
        assert total > 0
        client.send(amqp_wire.CLOSE_OK)
        assert answer_as_broker(session) == []
    client.recv_to_end()
    client.close()
    assert leat.end() == 0


def get_unacked(client, queue):
    """Opens channel 1 and takes one message without acking it; returns its delivery tag."""
    client.send(amqp_wire.method(1, "channel.open", amqp_wire.shortstr("")))
    client.expect("channel.open-ok")
    get = struct.pack(">HHH", 60, 70, 0) + amqp_wire.shortstr(queue) + b"\0"
    client.send(amqp_wire.frame(amqp_wire.METHOD, 1, get))
    delivery = client.expect("basic.get-ok")
    assert client.recv_frame().type == amqp_wire.CONTENT_HEADER
    assert client.recv_frame().type == amqp_wire.BODY
    return struct.unpack_from(">Q", delivery.args)[0]


def test_R18_an_ack_before_close_ok_counts(run_leat, rabbit, tls):
    """A proxy that stopped cut off workers before they could acknowledge."""
    queue = "drained"
    with clients.connect(rabbit.port) as direct:
        channel = direct.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue)
        channel.basic_publish("", queue, b"once")
    leat = run_leat(rabbit, more=SOON)
    client = amqp_wire.Client(leat.port, tls).connect()
    tag = get_unacked(client, queue)
    terminate(leat)
    ack = amqp_wire.frame(amqp_wire.METHOD, 1, struct.pack(">HHQB", 60, 80, tag, 0))
    assert client.take_close(ack) == GOING
    assert leat.end() == 0
    with clients.connect(rabbit.port) as direct:
        channel = direct.channel()
        assert channel.queue_declare(queue, passive=True).method.message_count == 0
        channel.queue_delete(queue)


def test_R23_it_exits_in_time(start, broker):
    """Whatever its sessions do: none of these clients ever answers."""
    leat = start("--drain.close_after", "200ms", "--drain.close_until", "400ms",
                 "--drain.end", "1s")
    silent = [amqp_wire.Client(leat.port) for _ in range(5)]
    silent += [amqp_wire.Client(leat.port).connect() for _ in range(5)]
    stalled = silent[-1]
    flow.send_until_queued(leat, stalled)
    begun = time.monotonic()
    terminate(leat)
    assert leat.end() == 0
    assert time.monotonic() - begun < 10
    for client in silent:
        client.close()


def come_and_go(port):
    """Connects and logs in, again and again, until nobody listens any more."""
    with contextlib.suppress(OSError, EOFError, AssertionError):
        while True:
            amqp_wire.Client(port).connect().close()


@pytest.mark.parametrize("order", itertools.permutations(["SIGUSR1", "SIGHUP", "SIGTERM"]),
                         ids="-".join)
def test_R48_signals_to_busy_threads_do_not_keep_it(plain_leat, run_broker, order):
    """Threads that were told to stop while others worked ran on for ever."""
    leat = plain_leat(run_broker(amqp_wire.serving()),
                      more=["--workers", "4", *SOON, "--drain.end", "1s"])
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(come_and_go, leat.port)
        leat.wait("closed", number=20)
        for name in order:
            leat.process.send_signal(getattr(signal, name))
        assert leat.end() == 0
