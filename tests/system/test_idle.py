# SPDX-License-Identifier: Apache-2.0
"""Silence: a session that has nothing to say costs nothing, and one with heartbeats only those.

All clients are silent side by side, in one silence for the whole file.
"""
import concurrent.futures
import contextlib
import select
import time
import types

import pytest

import amqp_wire
import clients
import flow
import leat as leats

IDLE = 1000
SILENCE_SECONDS = 10
HEARTBEAT = 2
TICK = 0.1  # leat's timers share ticks


def pika_through(port, context):
    """An ordinary client that is silent, but for pika's heartbeats, then works on."""
    connection = clients.connect(port, context, heartbeat=HEARTBEAT)
    connection.process_data_events(time_limit=SILENCE_SECONDS)
    received = clients.round_trip(connection, b"after the silence")
    connection.close()
    return received


def heartbeats_through(port, context):
    """A client that answers each heartbeat with one. Returns how many came in how many seconds."""
    client = amqp_wire.Client(port, context).connect(heartbeat=HEARTBEAT)
    begun = time.monotonic()
    count = 0
    while (elapsed := time.monotonic() - begun) < SILENCE_SECONDS:
        client.expect("heartbeat")
        client.send(amqp_wire.frame(amqp_wire.HEARTBEAT, 0))
        count += 1
    client.close_politely()
    return count, elapsed


def deaf_through(port, context):
    """A client that never sends a heartbeat. Returns how long leat lets it live."""
    client = amqp_wire.Client(port, context).connect(heartbeat=HEARTBEAT)
    begun = time.monotonic()
    client.recv_to_end()
    client.close()
    return time.monotonic() - begun


def idle_clients(port, context):
    def one(_):
        return amqp_wire.Client(port, context).connect(heartbeat=0)

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        return list(threads.map(one, range(IDLE)))


def any_readable(peers):
    """Waits SILENCE_SECONDS for any of PEERS to hear something."""
    poller = select.poll()
    for peer in peers:
        poller.register(peer.sock, select.POLLIN)
    return poller.poll(SILENCE_SECONDS * 1000)


@pytest.fixture(scope="module")
def silence(rabbit, certs, tls):
    """Everybody's silence. Returns what was seen."""
    seen = types.SimpleNamespace()
    with contextlib.ExitStack() as stack:
        def use(thing):
            stack.callback(thing.stop)
            return thing

        def leat_before(port):
            return use(leats.Leat("amqps://127.0.0.1:0", f"amqp://127.0.0.1:{port}", certs))

        no_heartbeat = use(amqp_wire.Broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT)))
        echoing, serving = (use(amqp_wire.Broker(amqp_wire.serving(echo_heartbeats=True)))
                            for _ in range(2))
        idle = leat_before(no_heartbeat.port)
        beating, counted, deaf = (leat_before(port)
                                  for port in (rabbit.port, echoing.port, serving.port))
        peers = idle_clients(idle.port, tls)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            before = flow.at_rest(idle)
            pikas = [threads.submit(pika_through, beating.port, tls) for _ in range(3)]
            beats = threads.submit(heartbeats_through, counted.port, tls)
            deafness = threads.submit(deaf_through, deaf.port, tls)
            seen.heard = any_readable(peers)
            after = idle.status()
            seen.received = [one.result() for one in pikas]
            seen.client_beats, seen.client_seconds = beats.result()
            seen.deaf_seconds = deafness.result()
        counted.wait("closed")
        deaf.wait("closed")
        seen.broker_beats = echoing.sessions[0].frames_in["heartbeat"]
        seen.broker_tune = echoing.sessions[0].tune
        seen.deaf_log = deaf.text()
        seen.sessions = after["sessions"]
        seen.work = {name: after[name] - before[name]
                     for name in ("wakeups", "polls", "recvs", "sends")}
        for peer in peers:
            peer.close()
        idle.wait("closed", number=IDLE - 1)
        yield seen


def test_a_thousand_idle_sessions_cause_no_wakeup(silence):
    assert silence.heard == []
    assert silence.sessions == IDLE
    assert silence.work["wakeups"] == 0, silence.work
    assert (silence.work["recvs"], silence.work["sends"]) == (0, 0)


def test_sessions_with_heartbeats_survive_a_long_silence(silence):
    assert silence.received == [b"after the silence"] * 3


def beats_due(seconds):
    """One after each half interval in which nothing was sent, late by a tick or two."""
    return range(int(seconds / (HEARTBEAT / 2 + 2 * TICK)) - 1, int(seconds / (HEARTBEAT / 2)) + 2)


def test_the_client_gets_exactly_the_heartbeats_due(silence):
    assert silence.client_beats in beats_due(silence.client_seconds)


def test_the_broker_gets_exactly_the_heartbeats_due(silence):
    assert silence.broker_tune.heartbeat == HEARTBEAT
    assert silence.broker_beats in beats_due(silence.client_seconds)


def test_a_client_without_heartbeats_is_given_up_after_two_intervals(silence):
    assert silence.deaf_seconds >= 2 * HEARTBEAT - TICK
    assert "heartbeat" in silence.deaf_log
