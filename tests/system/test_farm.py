# SPDX-License-Identifier: Apache-2.0
"""Several brokers: each in turn, past the ones that fail, and back to them when they work."""
import collections
import concurrent.futures
import contextlib
import datetime
import re
import socket
import time

import pytest

import amqp_wire
from leat import NO_BROKER

TUNE_TOO_SMALL = amqp_wire.Tune(2047, 100, 60)
BACKOFF_SECONDS = 5
RETURN_SECONDS = 40  # a broker that works again has sessions by then


def open_and_close(leat):
    amqp_wire.Client(leat.port).connect().close_politely()


def backends_of(leat, count):
    """The backends of the first COUNT sessions that opened."""
    leat.wait("opened", number=count - 1)
    return [line.fields["backend"] for line in leat.find("opened")[:count]]


def address(broker):
    return f"127.0.0.1:{broker.port}"


def brokers_in(run_broker, count):
    return [run_broker(amqp_wire.serving()) for _ in range(count)]


# Rotation.

@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_one_session_after_the_other_goes_round(plain_leat, run_broker, count, workers):
    brokers = brokers_in(run_broker, count)
    leat = plain_leat(*brokers, more=["--workers", workers])
    for _ in range(3 * count):
        open_and_close(leat)
    assert backends_of(leat, 3 * count) == [address(broker) for broker in brokers] * 3


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_sessions_at_once_are_spread_evenly(plain_leat, run_broker, count, workers):
    brokers = brokers_in(run_broker, count)
    leat = plain_leat(*brokers, more=["--workers", workers])
    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        for done in [threads.submit(open_and_close, leat) for _ in range(10 * count)]:
            done.result()
    spread = collections.Counter(backends_of(leat, 10 * count))
    assert spread == {address(broker): 10 for broker in brokers}


def test_R22_brokers_without_a_limit_of_channels_share_sessions_too(plain_leat, run_broker):
    """All sessions went to one of three nodes when they set channel_max to 0, no limit."""
    brokers = [run_broker(amqp_wire.serving(amqp_wire.Tune(0, 131072, 60))) for _ in range(3)]
    leat = plain_leat(*brokers)
    for _ in range(9):
        open_and_close(leat)
    assert backends_of(leat, 9) == [address(broker) for broker in brokers] * 3
    assert {session.tune.channel_max for one in brokers for session in one.sessions} == {2047}


def test_a_failing_brokers_share_goes_to_all_others(plain_leat, run_broker, dead_port):
    brokers = brokers_in(run_broker, 3)
    leat = plain_leat(brokers[0], dead_port, *brokers[1:])
    for _ in range(2):
        open_and_close(leat)  # the second one finds the dead broker
    leat.wait("failed:")
    for _ in range(30):
        open_and_close(leat)
    spread = collections.Counter(backends_of(leat, 32)[2:])
    assert spread == {address(broker): 10 for broker in brokers}


# Brokers that fail.

def dropping(session):
    session.close()


def dropping_after_start(session):
    session.start()
    session.close()


def closing_instead_of_start(session):
    session.recv_exactly(8)
    session.send(amqp_wire.close_frame(320, "CONNECTION_FORCED - going"))
    session.recv_to_end()


def offering_no_plain(session):
    session.start(mechanisms=b"EXTERNAL PLAINTIVE")


def speaking_an_old_version(session):
    session.recv_exactly(8)
    session.send(b"AMQP\1\1\x08\0")
    session.recv_to_end()


def opening_too_soon(session):
    session.start()
    session.send(amqp_wire.OPEN_OK)
    session.recv_to_end()


FAILURES = [
    (dropping, "dropped the connection|reset"),
    (amqp_wire.resetting, "reset"),
    (amqp_wire.babbling, "frame of type 255"),
    (amqp_wire.silent, r"did not send Start in time \(timeouts.handshake\)"),
    (closing_instead_of_start, 'answered 320 "?CONNECTION_FORCED - going'),
    (speaking_an_old_version, "another version of AMQP .* AMQP 1 1 8"),
    (opening_too_soon, r"connection.open-ok \(10,41\) where Tune was due"),
    (amqp_wire.serving(TUNE_TOO_SMALL), "offers frame_max 100"),
    (amqp_wire.refusing(320, "CONNECTION_FORCED - full"),
     'answered 320 "?CONNECTION_FORCED - full'),
    (amqp_wire.refusing(530, "NOT_ALLOWED - access to vhost '/' refused for user 'guest': "
                             "node connection limit (1) is reached"),
     'answered 530 "?NOT_ALLOWED .*node connection limit'),
]
FAILURE_NAMES = ["drops", "resets", "garbage", "silent", "320-for-start",
                 "old-version", "open-ok-for-tune", "frame-max-100", "320", "530-node-limit"]


def assert_the_next_one_serves(leat, bad, reason):
    """BAD, an address, is the first backend and fails for REASON. Three sessions."""
    for _ in range(3):
        open_and_close(leat)
    line = leat.wait("failed:")
    assert line.level == "warn"
    assert line.fields["backend"] == bad
    assert re.search(reason, line.text), line.text
    assert f"it goes last for {BACKOFF_SECONDS} s" in line.text
    assert bad not in backends_of(leat, 3)
    assert len(leat.find("failed:")) == 1


@pytest.mark.parametrize("script, reason", FAILURES, ids=FAILURE_NAMES)
def test_the_next_broker_serves_when_one_fails(plain_leat, run_broker, script, reason):
    bad, good = run_broker(script), run_broker(amqp_wire.serving())
    leat = plain_leat(bad, good, more=["--timeouts.handshake", "1s"])
    assert_the_next_one_serves(leat, address(bad), reason)
    assert (len(bad.sessions), len(good.sessions)) == (1, 3)


@pytest.mark.parametrize("script, reason", [
    (offering_no_plain, "does not offer .* PLAIN; it offers .*EXTERNAL PLAINTIVE"),
    (amqp_wire.refusing(541, "INTERNAL_ERROR"), "answered 541 INTERNAL_ERROR"),
    (dropping_after_start, "dropped the connection|reset"),
], ids=["no-plain", "541", "lost-between-login-and-tune"])
def test_a_broker_that_is_unfit_for_one_login_keeps_its_place(plain_leat, run_broker, script,
                                                              reason):
    unfit, good = run_broker(script), run_broker(amqp_wire.serving())
    leat = plain_leat(unfit, good)
    for _ in range(4):
        open_and_close(leat)
    line = leat.wait("passed", "over:", number=1)
    assert line.fields["backend"] == address(unfit)
    assert re.search(reason, line.text), line.text
    assert not leat.find("failed:")
    assert (len(unfit.sessions), len(good.sessions)) == (2, 4), "it is asked in its turn"


def test_the_next_broker_serves_when_one_refuses_tcp(plain_leat, run_broker, dead_port):
    leat = plain_leat(dead_port, run_broker(amqp_wire.serving()))
    assert_the_next_one_serves(leat, f"127.0.0.1:{dead_port}", "refused")


def test_the_next_broker_serves_when_one_does_not_answer_tcp(plain_leat, run_broker):
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(2):  # fill its queue: the kernel then drops what comes
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        leat = plain_leat(port, run_broker(amqp_wire.serving()),
                          more=["--timeouts.connect", "500ms"])
        assert_the_next_one_serves(leat, f"127.0.0.1:{port}", "no connection in time")


def resetting_in_tls(session):
    assert session.recv_exactly(3)[:2] == b"\x16\x03"
    session.reset()


def answering_tls_with_amqp(session):
    session.recv_exactly(8)
    session.send(amqp_wire.HEADER)
    session.recv_to_end()


@pytest.mark.parametrize("script, reason", [(resetting_in_tls, "reset"),
                                            (answering_tls_with_amqp, "TLS|wrong version number"),
                                            (amqp_wire.silent, "timeouts.tls")],
                         ids=["reset", "no-tls", "silent"])
def test_the_next_broker_serves_when_tls_fails(plain_leat, run_broker, certs, script, reason):
    bad, good = run_broker(script), run_broker(amqp_wire.serving())
    leat = plain_leat(f"amqps://{address(bad)}", good,
                      more=["--backend-ca", certs.ca, "--timeouts.tls", "1s"])
    assert_the_next_one_serves(leat, address(bad), reason)


@pytest.mark.parametrize("cert, reason", [("expired_cert", "expired"),
                                          ("misnamed_cert", "name|IP")])
def test_the_next_broker_serves_when_a_certificate_is_wrong(plain_leat, run_broker, certs, cert,
                                                            reason):
    bad = run_broker(amqp_wire.serving(), certs.server_context(cert=getattr(certs, cert)))
    good = run_broker(amqp_wire.serving(), certs.server_context())
    leat = plain_leat(*(f"amqps://{address(one)}" for one in (bad, good)),
                      more=["--backend-ca", certs.ca])
    assert_the_next_one_serves(leat, address(bad), reason)
    assert bad.sessions == [] and len(good.sessions) == 3


def test_five_that_fail_are_passed_over_in_one_search(plain_leat, run_broker):
    bad = [run_broker(script) for script in (dropping, amqp_wire.resetting, amqp_wire.babbling,
                                             speaking_an_old_version, opening_too_soon)]
    leat = plain_leat(*bad, run_broker(amqp_wire.serving()))
    open_and_close(leat)
    leat.wait("failed:", number=4)
    assert [line.fields["backend"] for line in leat.find("failed:")] == [address(b) for b in bad]
    assert [len(one.sessions) for one in bad] == [1] * 5


def test_a_brokers_words_can_not_forge_a_log_line(plain_leat, run_broker):
    forged = "2026-01-01T00:00:00.000Z info session=1 opened \x1b[2J"
    bad = run_broker(amqp_wire.refusing(541, f"INTERNAL_ERROR\n{forged}"))
    leat = plain_leat(bad, run_broker(amqp_wire.serving()))
    open_and_close(leat)
    assert "INTERNAL_ERROR" in leat.wait("passed", "over:").text
    leat.wait("closed")
    events = [line.words[0] for line in leat.lines[leat.ready_at:]]
    assert events.count("opened") == 1, leat.text()
    assert "\x1b" not in leat.text()


# All of them fail.

def test_when_all_fail_the_client_is_told_without_addresses(plain_leat, run_broker, dead_port):
    bad = [run_broker(amqp_wire.babbling), run_broker(amqp_wire.refusing(541, "INTERNAL_ERROR"))]
    leat = plain_leat(*bad, dead_port)
    for round_ in range(2):  # the second time all of them go last
        assert amqp_wire.Client(leat.port).answer_to_open() == NO_BROKER
        line = leat.wait("refused", number=round_)
        assert (line.fields["by"], line.fields["code"]) == ("leat", "320")
        assert "no broker can be reached" in line.fields["reason"]
        assert [len(one.sessions) for one in bad] == [round_ + 1] * 2


def test_a_search_that_takes_too_long_ends(plain_leat, run_broker):
    slow = [run_broker(amqp_wire.silent) for _ in range(3)]
    leat = plain_leat(*slow, more=["--timeouts.search", "500ms", "--timeouts.handshake", "60s"])
    code, text = amqp_wire.Client(leat.port).answer_to_open()
    assert (code, text) == (320, "CONNECTION_FORCED - no broker could be reached in time")
    assert leat.wait("refused").fields["by"] == "leat"
    for broker in slow:
        broker.wait_ended()
    assert sum(len(broker.sessions) for broker in slow) == 1


# Back to work.

def at(line):
    stamp = line.text.split(" ")[0].removesuffix("Z")
    return datetime.datetime.fromisoformat(stamp).timestamp()


class FailsAtFirst:
    """A script that plays BAD until `works` is set, then serves."""

    def __init__(self, bad):
        self.bad, self.works = bad, False

    def __call__(self, session):
        (amqp_wire.serving() if self.works else self.bad)(session)


def test_a_broker_that_works_again_gets_its_share_again(plain_leat, run_broker):
    script = FailsAtFirst(amqp_wire.resetting)
    back, other = run_broker(script), run_broker(amqp_wire.serving())
    leat = plain_leat(back, other)
    open_and_close(leat)
    failed = leat.wait("failed:")
    script.works = True
    deadline = time.monotonic() + RETURN_SECONDS
    while not leat.find("works", "again") and time.monotonic() < deadline:
        open_and_close(leat)
    works = leat.wait("works", "again")
    assert works.fields["backend"] == address(back)
    assert at(works) - at(failed) >= BACKOFF_SECONDS - 0.5, "it did not go last for long"
    since = len(leat.lines)
    for _ in range(10):
        open_and_close(leat)
    leat.wait("opened", number=9, since=since)
    spread = collections.Counter(line.fields["backend"]
                                 for line in leat.find("opened", since=since)[:10])
    assert spread == {address(back): 5, address(other): 5}
