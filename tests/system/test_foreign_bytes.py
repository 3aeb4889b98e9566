# SPDX-License-Identifier: Apache-2.0
"""Peers that do not speak AMQP 0-9-1: answered if AMQP says how, named in the log, and no harm."""
import os
import ssl

import pytest

import amqp_wire
import clients


@pytest.fixture
def plain(plain_leat, rabbit):
    return plain_leat(rabbit)


def noise(size):
    """Random bytes that no protocol's first bytes are."""
    return b"\x00" + os.urandom(size - 1)


def answer_to(port, data):
    """Sends DATA; returns all that comes back until leat ends the connection."""
    peer = amqp_wire.Client(port)
    peer.send(data)
    answer = peer.recv_to_end()
    peer.close()
    return answer


def complaint(leat):
    """The line about a session that never opened."""
    line = leat.wait(since=leat.ready_at)
    assert line.level == "warn"
    assert {"refused", "failed"} & set(line.words)
    assert line.fields["peer"].startswith("127.0.0.1:")
    return line


def works(leat, context=None):
    connection = clients.connect(leat.port, context)
    received = clients.round_trip(connection, b"x")
    connection.close()
    return received == b"x"


@pytest.mark.parametrize("first", [b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00",
                                   b"AMQP\x01\x01\x08\x00", b"GET / HTTP/1.1\r\n\r\n",
                                   noise(8), noise(5000)],
                         ids=["amqp-1.0-sasl", "amqp-1.0", "amqp-0-8", "http", "noise", "much"])
def test_other_protocols_are_told_the_right_header(plain, first):
    assert answer_to(plain.port, first) == amqp_wire.HEADER
    complaint(plain)
    assert works(plain)


def test_R20_tls_on_a_plain_port_is_named(plain, tls):
    """Who spoke TLS to a plain port was reset without a word in the log."""
    with pytest.raises((ssl.SSLError, OSError)):
        amqp_wire.Client(plain.port, tls)
    assert "TLS" in complaint(plain).text
    assert plain.status()["failed"] == 1
    assert works(plain)


def test_R34_the_first_bytes_of_tls_on_a_plain_port_are_named(plain):
    """The log had the first eight bytes as numbers, and left it to people to see TLS in them."""
    answer_to(plain.port, bytes([22, 3, 1, 0, 138, 1, 0, 0]))
    assert "TLS" in complaint(plain).text
    assert works(plain)


def test_plain_amqp_on_a_tls_port_is_named(leat, tls):
    answer_to(leat.port, amqp_wire.HEADER)
    assert "TLS" in complaint(leat).text
    assert works(leat, tls)


def test_noise_on_a_tls_port_ends_that_connection_only(leat, tls):
    answer_to(leat.port, noise(3000))
    complaint(leat)
    assert works(leat, tls)


def test_a_connection_that_says_nothing_is_no_news(plain):
    peer = amqp_wire.Client(plain.port)
    peer.close()
    assert works(plain)
    plain.wait("closed")
    assert [line.words for line in plain.lines[plain.ready_at:]] == [["opened"], ["closed"]]
