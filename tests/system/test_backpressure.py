# SPDX-License-Identifier: Apache-2.0
"""A peer that does not read: leat holds little for it, holds up nobody else, and loses nothing."""
import concurrent.futures
import socket
import threading

import pytest

import amqp_wire
import flow
from leat import BROKER_LOST

MUCH = 100_000_000
HELD_MAX = 1_200_000  # bytes that leat may hold for one direction that is stalled
HEARTBEAT = 1
STALL_SECONDS = 2 * HEARTBEAT + 2
QUEUE_LIMIT = 1024 * 1024


class Sessions:
    """Opens sessions through LEAT; each is the client and, left to the test, BROKER's end."""

    def __init__(self, leat, broker, context=None):
        self.leat, self.broker, self.context = leat, broker, context
        self.clients = []

    def open(self, heartbeat=0, **options):
        client = amqp_wire.Client(self.leat.port, self.context, **options)
        self.clients.append(client)
        client.connect(heartbeat=heartbeat)
        return client, self.broker.wait_sessions(len(self.clients))[-1]

    def close(self):
        for client in self.clients:
            client.close()


@pytest.fixture
def start(run_leat, run_broker, tls):
    """Starts a leat with one worker before a broker that offers TUNE. Returns its Sessions."""
    started = []

    def start_one(scheme="amqp", tune=amqp_wire.NO_HEARTBEAT, more=()):
        broker = run_broker(amqp_wire.held(tune))
        leat = run_leat(broker, listen=f"{scheme}://127.0.0.1:0", more=["--workers", "1", *more])
        started.append(Sessions(leat, broker, tls if scheme == "amqps" else None))
        return started[-1]

    yield start_one
    for sessions in started:
        sessions.close()


@pytest.fixture(params=["amqps", "amqp"])
def sessions(request, start):
    return start(request.param)


def works(client, broker):
    """Whether a small frame comes through each way."""
    for number, (source, target) in enumerate([(client, broker), (broker, client)]):
        payload = b"small %d" % number
        source.send(amqp_wire.frame(amqp_wire.BODY, 1, payload))
        if target.recv_frame().payload != payload:
            return False
    return True


@pytest.mark.parametrize("stalled", ["client", "broker"])
def test_all_arrives_when_a_stopped_reader_resumes(sessions, stalled):
    leat = sessions.leat
    client, broker = sessions.open()
    source, target = (broker, client) if stalled == "client" else (client, broker)
    pump = flow.Pump(source, MUCH)
    flow.wait_status(leat, lambda status: status["queued"] > 0)
    held = flow.at_rest(leat)["queued"]
    assert 0 < held < HELD_MAX
    assert works(*sessions.open()), "another session stands still"
    assert pump.is_alive()
    assert flow.take(target, MUCH) == pump.finish()
    assert leat.status()["queued"] == 0
    assert works(client, broker)


def test_R12_both_directions_stalled_at_once(sessions):
    """With the buffers of both sides full, two threads waited for each other for ever."""
    leat = sessions.leat
    client, broker = sessions.open()
    down, down_digest = flow.send_until_queued(leat, broker)
    up, up_digest = flow.send_until_queued(leat, client)
    assert flow.at_rest(leat)["queued"] < 2 * HELD_MAX
    assert flow.take(broker, up) == up_digest
    assert flow.take(client, down) == down_digest
    assert works(client, broker)


def test_what_came_before_the_pause_is_delivered_without_another_byte(sessions):
    leat = sessions.leat
    client, broker = sessions.open()
    size, digest = flow.send_until_queued(leat, client)
    flow.at_rest(leat)
    assert flow.take(broker, size) == digest
    assert leat.status()["queued"] == 0


def test_R50_a_client_that_leaves_while_the_broker_does_not_read(sessions):
    """A server noticed an end only when it could write, or span on it."""
    leat = sessions.leat
    client, broker = sessions.open()
    size, digest = flow.send_until_queued(leat, client)
    client.close()
    status = flow.at_rest(leat)
    assert status["queued"] > 0
    assert flow.take(broker, size) == digest
    assert broker.recv_to_end() == b""
    broker.close()
    assert leat.wait("closed").fields["by"] == "client"
    assert flow.wait_status(leat, lambda now: now["connections"] == 0)["queued"] == 0


def test_a_broker_that_leaves_while_the_client_does_not_read(sessions):
    leat = sessions.leat
    client, broker = sessions.open()
    size, digest = flow.send_until_queued(leat, broker)
    broker.close()
    flow.at_rest(leat)
    assert flow.take(client, size) == digest
    assert amqp_wire.read_close(client.expect("connection.close")) == BROKER_LOST
    assert client.recv_to_end() == b""
    client.close()
    assert leat.wait("closed").fields["by"] == "broker"


def test_R50_a_broker_that_has_said_all_and_does_not_read(sessions):
    """leat has to deliver to it what waits, though it has heard its end already."""
    leat = sessions.leat
    client, broker = sessions.open()
    flow.send_until_queued(leat, client)
    broker.sock.shutdown(socket.SHUT_WR)
    assert amqp_wire.read_close(client.expect("connection.close"))[0] == 320
    assert client.recv_to_end() == b""
    client.close()
    assert flow.at_rest(leat)["connections"] == 1
    received = broker.recv_to_end()
    broker.close()
    assert len(received) == int(leat.wait("closed").fields["bytes_in"]) > 0
    assert flow.wait_status(leat, lambda now: now["connections"] == 0)["queued"] == 0


@pytest.mark.parametrize("lost", ["client", "broker"])
def test_a_reset_is_noticed_while_reading_is_paused(sessions, lost):
    leat = sessions.leat
    client, broker = sessions.open()
    source, target = (client, broker) if lost == "client" else (broker, client)
    flow.send_until_queued(leat, source)
    flow.at_rest(leat)
    source.reset()
    assert leat.wait("closed").fields["by"] == lost
    # What was taken from it before is still delivered, then nothing more is to come.
    target.recv_to_end()
    target.close()
    assert flow.wait_status(leat, lambda now: now["connections"] == 0)["queued"] == 0


def beat(leg, stop):
    """Sends a heartbeat each half interval until STOP."""
    while not stop.wait(HEARTBEAT / 2):
        leg.send(amqp_wire.frame(amqp_wire.HEARTBEAT, 0))


def client_does_not_read(client, broker):
    """The client still sends heartbeats, and so does the broker behind its bytes."""
    stop = threading.Event()
    pump = flow.Pump(broker, 30_000_000)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        beats = threads.submit(beat, client, stop)
        flow.pause(STALL_SECONDS)
        stop.set()
        beats.result()
    return flow.take(client, pump.size) == pump.finish()


def broker_does_not_read(client, broker):
    """The client can't send heartbeats: leat does not read it."""
    stop = threading.Event()
    pump = flow.Pump(client, 30_000_000)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        beats = threads.submit(beat, broker, stop)
        flow.pause(STALL_SECONDS)
        taken = flow.take(broker, pump.size)
        stop.set()
        beats.result()
    return taken == pump.finish()


def nobody_reads(client, broker):
    pumps = [flow.Pump(client, 30_000_000), flow.Pump(broker, 30_000_000)]
    flow.pause(STALL_SECONDS)
    taken = [flow.take(broker, pumps[0].size)]
    sent = [pumps[0].finish()]
    taken.append(flow.take(client, pumps[1].size))
    sent.append(pumps[1].finish())
    return taken == sent


def test_a_stalled_peer_is_not_taken_for_dead(start):
    """All stall side by side for more than two heartbeat intervals, then get all."""
    scenarios = [client_does_not_read, broker_does_not_read, nobody_reads]
    sessions = start(tune=amqp_wire.DEFAULT_TUNE._replace(heartbeat=HEARTBEAT))
    ends = [sessions.open(HEARTBEAT) for _ in scenarios]
    with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as threads:
        runs = [threads.submit(play, *pair) for play, pair in zip(scenarios, ends)]
    assert [run.result() for run in runs] == [True] * len(scenarios)
    assert sessions.leat.status()["sessions"] == len(scenarios)
    assert not sessions.leat.find("closed")


def stalled_at_full_speed(sessions):
    """A session whose client reads so much that leat's reads grow, then stops. Returns its pump."""
    client, broker = sessions.open(receive_buffer=500_000)
    pump = flow.Pump(broker, MUCH)
    client.recv_exactly(2_000_000)
    return pump


def test_many_slow_readers_are_held_to_the_limit_of_the_process(start):
    sessions = start(more=["--limits.queue", "1MiB"])
    pumps, slow = [], 20
    while (before := flow.at_rest(sessions.leat)["queued"]) <= QUEUE_LIMIT:
        assert len(pumps) < 40, "the limit of the process is never reached"
        pumps += [stalled_at_full_speed(sessions) for _ in range(5)]
    pumps += [stalled_at_full_speed(sessions) for _ in range(slow)]
    after = flow.at_rest(sessions.leat)["queued"]
    assert [pump.failure for pump in pumps if not pump.is_alive()] == []
    assert after - before <= slow * 64 * 1024
