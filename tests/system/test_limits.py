# SPDX-License-Identifier: Apache-2.0
"""Limits: what is above one is refused and counted, what is below works on, and all recovers."""
import json
import os
import pathlib
import resource
import subprocess
import sys

import pytest

import amqp_wire
import flow

FEW_DESCRIPTORS = 100


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def start(plain_leat, broker):
    def start_one(*more, **options):
        return plain_leat(broker, more=more, **options)

    return start_one


def test_one_session_too_many_is_refused_until_another_ends(start, broker):
    leat = start("--limits.sessions", "2")
    first, second = (amqp_wire.Client(leat.port).connect() for _ in range(2))
    code, text = amqp_wire.Client(leat.port).answer_to_open()
    assert code == 530 and text.startswith("NOT_ALLOWED - ")
    assert "limit of 2 " in text
    leat.the_end("refused", by="leat", code=530)
    assert leat.status()["turned_away"] == 1
    assert len(broker.sessions) == 2, "a broker was bothered"
    first.close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == 1)
    amqp_wire.Client(leat.port).connect().close_politely()
    second.close_politely()


def test_a_refused_session_takes_nobodys_place(start):
    leat = start("--limits.sessions", "1")
    only = amqp_wire.Client(leat.port).connect()
    refused = amqp_wire.Client(leat.port).ask()
    assert amqp_wire.read_close(refused.recv_frame())[0] == 530
    only.close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == 1)
    # The one that was refused has not gone yet.
    amqp_wire.Client(leat.port).connect().close_politely()
    refused.close()


def ended_by_leat(peer):
    received = peer.recv_to_end()
    peer.close()
    return received == b""


def test_handshakes_above_the_limit_are_turned_away(start):
    more = 200
    leat = start("--limits.handshakes", "4")
    session = amqp_wire.Client(leat.port).connect()
    idle = [amqp_wire.Client(leat.port) for _ in range(4)]
    flow.wait_status(leat, lambda now: now["handshakes"] == 4)
    assert all(ended_by_leat(amqp_wire.Client(leat.port)) for _ in range(more))
    status = leat.status()
    assert (status["turned_away"], status["handshakes"], status["sessions"]) == (more, 4, 1)
    lines = leat.find("turned", "away:")
    assert lines and "limits.handshakes" in lines[0].text
    assert len(lines) <= more / 4, "each connection has a line"
    for peer in idle:
        peer.close()
    flow.wait_status(leat, lambda now: now["handshakes"] == 0)
    amqp_wire.Client(leat.port).connect().close_politely()
    session.close_politely()


def is_calm(leat):
    """Whether neither the workers nor the log have much to do, though connections wait."""
    lines, before = len(leat.lines), leat.status()
    flow.pause(1)
    after = leat.status()
    return (flow.turns(after) - flow.turns(before) < 50 and len(leat.lines) - lines < 10 and
            after["accepts"] - before["accepts"] < 50)


def test_without_descriptors_it_waits_and_recovers(start):
    leat = start("--timeouts.handshake", "1h", "--workers", "2")
    resource.prlimit(leat.process.pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, FEW_DESCRIPTORS))
    session = amqp_wire.Client(leat.port).connect()
    peers = [amqp_wire.Client(leat.port) for _ in range(2 * FEW_DESCRIPTORS)]
    line = leat.wait("accepted:")
    assert line.level == "error" and "ulimit -n" in line.text
    assert is_calm(leat)
    before = leat.status()
    session.send(amqp_wire.frame(amqp_wire.BODY, 1, b"still here"))
    flow.wait_status(leat, lambda now: now["recvs"] > before["recvs"])
    for peer in peers:
        peer.close()
    flow.wait_status(leat, lambda now: now["connections"] == 1 and
                     now["accepted"] == len(peers) + 1)
    amqp_wire.Client(leat.port).connect().close_politely()
    session.close_politely()


def test_those_who_only_connect_leave_descriptors_for_sessions(start):
    leat = start("--timeouts.handshake", "1h", descriptors=FEW_DESCRIPTORS)
    client = amqp_wire.Client(leat.port)
    client.start()
    peers = [amqp_wire.Client(leat.port) for _ in range(2 * FEW_DESCRIPTORS)]
    flow.wait_status(leat, lambda now: now["turned_away"] > 0 or leat.find("accepted:"))
    assert is_calm(leat)
    client.tune_ok()
    client.open()
    assert not leat.find("failed:"), "a broker is blamed for it"
    client.close_politely()
    for peer in peers:
        peer.close()
    flow.wait_status(leat, lambda now: now["connections"] == 0)


def test_R16_many_short_clients_leave_nothing_behind(run_leat, broker, tls):
    """Connections to the broker piled up until memory ran out."""
    rounds = 200
    leat = run_leat(broker)
    amqp_wire.Client(leat.port, tls).connect().close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == 0)
    before = flow.descriptors(leat)
    for number in range(rounds):
        client = amqp_wire.Client(leat.port, tls).connect()
        if number % 2:
            client.close_politely()
        else:
            client.reset()
    status = flow.wait_status(leat, lambda now: now["connections"] == 0)
    assert (status["opened"], status["closed"]) == (rounds + 1, rounds + 1)
    assert flow.descriptors(leat) == before
    broker.wait_ended()


def test_ports_used_up_are_named():
    program = pathlib.Path(amqp_wire.__file__).with_name("few_ports.py")
    # Whoever is not root has to become it in a namespace of users first; in a chroot nobody may.
    become_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(["unshare", *become_root, "--net", sys.executable, program],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["answers"] == ["connection.open-ok"] * 4 + ["connection.close"]
    assert "no local port is free" in seen["log"] and "ip_local_port_range" in seen["log"]


def test_those_who_linger_leave_room_for_others(start):
    leat = start("--limits.handshakes", "20", descriptors=256)
    strangers = []
    for _ in range(300):  # each is answered, and stays
        stranger = amqp_wire.Client(leat.port)
        stranger.send(b"GET / HTTP/1.0\r\n\r\n")
        strangers.append(stranger)
    flow.wait_status(leat, lambda now: now["failed"] + now["turned_away"] == 300)
    assert leat.status()["connections"] <= 40, "they hold more than handshakes may"
    flow.wait_status(leat, lambda now: now["connections"] < 20)
    amqp_wire.Client(leat.port).connect().close_politely()
    for stranger in strangers:
        stranger.close()


def test_refused_logins_do_not_flood_the_log(start):
    leat = start()
    for number in range(300):
        client = amqp_wire.Client(leat.port)
        client.start(user=f"user{number}")
        client.expect("connection.tune")
        client.send(amqp_wire.close_frame(200, "never mind"))
        client.recv_to_fin()
        client.close()
    assert leat.status()["failed"] == 300
    assert len(leat.find("failed")) == 200, "there is a bound for ten seconds"


def watched(pid):
    """How many descriptors each of the process's epolls watches."""
    counts = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(fd) == "anon_inode:[eventpoll]":
            info = pathlib.Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text()
            counts.append(info.count("tfd:"))
    return sorted(counts)


def test_sessions_are_spread_over_the_workers(start):
    leat = start("--workers", "4")
    before = watched(leat.process.pid)
    clients = [amqp_wire.Client(leat.port).connect() for _ in range(40)]
    after = watched(leat.process.pid)
    # Each session is watched twice, once for each leg; the last loop is none of a worker's.
    assert sum(after) - sum(before) == 80
    assert after[-4:] == [after[-1]] * 4, "one worker has more to do than another"
    for client in clients:
        client.close_politely()
