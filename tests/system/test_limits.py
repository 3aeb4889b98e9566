# SPDX-License-Identifier: Apache-2.0
"""Limits: what is above one is refused and counted, what is below works on, and all recovers."""
import ctypes
import errno
import fcntl
import os
import resource
import socket
import struct
import threading

import pytest

import amqp_wire
import flow

LOOPBACK = "amqp://127.0.0.1:"
FEW_DESCRIPTORS = 100
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(flow.NO_HEARTBEAT))


@pytest.fixture
def start(run_leat, broker):
    def start_one(*more, **options):
        return run_leat(listen=f"{LOOPBACK}0", backend=f"{LOOPBACK}{broker.port}", more=more,
                        **options)

    return start_one


def refusal(leat):
    """The (code, text) of the Close that a new session gets."""
    answer = amqp_wire.Client(leat.port).answer_to_open()
    assert answer != "opened"
    return answer


def test_one_session_too_many_is_refused_until_another_ends(start):
    leat = start("--limits.sessions", "2")
    first, second = (amqp_wire.Client(leat.port).connect() for _ in range(2))
    code, text = refusal(leat)
    assert (code, text[:14]) == (530, "NOT_ALLOWED - ")
    assert "limit" in text and "2" in text
    assert leat.wait("refused").fields["code"] == "530"
    assert leat.status()["turned_away"] == 1
    first.close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == 1)
    amqp_wire.Client(leat.port).connect().close_politely()
    second.close_politely()


def test_a_refused_session_takes_nobodys_place(start):
    leat = start("--limits.sessions", "1")
    only = amqp_wire.Client(leat.port).connect()
    refused = amqp_wire.Client(leat.port)
    refused.start()
    refused.tune_ok()
    refused.open()
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


LARGE = {"token": "x" * 20_000}


def test_a_large_first_frame_is_refused(start):
    leat = start()
    client = amqp_wire.Client(leat.port)
    client.start(properties=LARGE)
    code, text = amqp_wire.read_close(client.recv_frame())
    client.close()
    assert code == 501
    assert "8192" in text, "the limit is not named"
    assert leat.wait("refused").fields["code"] == "501"


def test_a_large_first_frame_is_let_in_when_the_limit_is_raised(start, broker):
    leat = start("--limits.initial_frame", "64KiB")
    client = amqp_wire.Client(leat.port)
    client.connect(properties=LARGE)
    client.close_politely()
    assert broker.sessions[0].login[2]["token"] == LARGE["token"]


def is_calm(leat, seconds=2):
    """Whether neither the workers nor the log have much to do, though connections wait."""
    lines, before = len(leat.lines), leat.status()
    flow.pause(seconds)
    after = leat.status()
    return (flow.turns(after) - flow.turns(before) < 100 and len(leat.lines) - lines < 20 and
            after["accepts"] - before["accepts"] < 100)


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
    client.expect("connection.open-ok")
    assert not leat.find("failed:"), "a broker is blamed for it"
    client.close_politely()
    for peer in peers:
        peer.close()
    flow.wait_status(leat, lambda now: now["connections"] == 0)


def test_R16_many_short_clients_leave_nothing_behind(run_leat, broker, tls):
    rounds = 200
    leat = run_leat(backend=f"{LOOPBACK}{broker.port}")
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


class Island(threading.Thread):
    """Runs ACTION(*ARGS) in a thread with a network of its own, of loopback only."""

    def __init__(self, action, *args):
        super().__init__(daemon=True)
        self.action, self.args, self.result, self.failure = action, args, None, None
        self.start()
        self.join()
        if self.failure:
            raise self.failure

    def run(self):
        try:
            if LIBC.unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            with socket.socket() as sock:
                up = struct.pack("16sH14x", b"lo", 1 | 8 | 64)  # up, loopback, running
                fcntl.ioctl(sock, 0x8914, up)  # SIOCSIFFLAGS
            self.result = self.action(*self.args)
        except BaseException as failure:
            self.failure = failure


def use_up_ports(run_leat):
    """Opens more sessions than there are local ports. Returns the answers and leat's log."""
    ports = "/proc/sys/net/ipv4/ip_local_port_range"
    broker = amqp_wire.Broker(amqp_wire.serving(flow.NO_HEARTBEAT))
    leat = run_leat(listen=f"{LOOPBACK}0", backend=f"{LOOPBACK}{broker.port}")
    with open(ports, "w", encoding="ascii") as file:
        file.write("50000 50003")
    clients, answers = [], []
    for number in range(5):
        client = amqp_wire.Client(leat.port, source_port=20000 + number)
        clients.append(client)
        client.start()
        client.tune_ok()
        client.open()
        answers.append(client.recv_frame())
    clients[0].close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == 4)
    for client in clients[1:]:
        client.close()
    broker.stop()
    return [answer.name for answer in answers], leat.text()


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of one's own needs root")
def test_ports_used_up_are_named(run_leat):
    try:
        names, log = Island(use_up_ports, run_leat).result
    except OSError as failure:
        if failure.errno == errno.EPERM:
            pytest.skip("no network of one's own can be made here")
        raise
    assert names == ["connection.open-ok"] * 4 + ["connection.close"]
    assert "no local port is free" in log and "ip_local_port_range" in log
