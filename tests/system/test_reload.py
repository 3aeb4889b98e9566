# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: the whole new configuration from the very next connection on, or none of it."""
import concurrent.futures
import os
import shutil
import signal
import struct

import pytest

import amqp_wire


@pytest.fixture
def brokers(run_broker):
    return [run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT)) for _ in range(2)]


@pytest.fixture
def files(certs, tmp_path):
    """A certificate and key in use, which a test may exchange."""
    shutil.copy(certs.cert, tmp_path / "cert.pem")
    shutil.copy(certs.key, tmp_path / "key.pem")
    return tmp_path


def configuration(broker, more="", address="amqps://127.0.0.1:0"):
    return (f"listeners:\n  - address: {address}\n    cert: cert.pem\n    key: key.pem\n"
            f"backends:\n  broker: {{ address: 'amqp://127.0.0.1:{broker.port}' }}\n" + more)


def reload(leat, *words):
    """Sends SIGHUP and waits for the line with WORDS that it leads to; returns it."""
    since = len(leat.lines)
    leat.process.send_signal(signal.SIGHUP)
    return leat.wait(*words, since=since)


def exchange(files, certs, cert=True, key=True):
    if cert:
        shutil.copy(certs.rsa_cert, files / "cert.pem")
    if key:
        shutil.copy(certs.rsa_key, files / "key.pem")


def shown_certificate(leat, tls):
    client = amqp_wire.Client(leat.port, tls).connect()
    shown = client.sock.getpeercert(binary_form=True)
    client.close_politely()
    return shown


def test_the_next_connection_has_the_new_certificate(run_file, brokers, files, certs, tls):
    leat = run_file(configuration(brokers[0]))
    old = shown_certificate(leat, tls)
    session = amqp_wire.Client(leat.port, tls).connect()
    exchange(files, certs)
    assert shown_certificate(leat, tls) == old
    assert reload(leat, "reloaded:").level == "info"
    assert shown_certificate(leat, tls) != old
    session.close_politely()  # it has gone on all the while


def test_a_leat_without_a_file_reads_its_certificate_again(run_leat, brokers, files, certs, tls):
    leat = run_leat(brokers[0], listen="amqps://127.0.0.1:0",
                    more=["--cert", files / "cert.pem", "--key", files / "key.pem"])
    old = shown_certificate(leat, tls)
    exchange(files, certs)
    reload(leat, "reloaded:")
    assert shown_certificate(leat, tls) != old


def test_a_pair_that_does_not_match_changes_nothing(run_file, brokers, files, certs, tls):
    leat = run_file(configuration(brokers[0]))
    old = shown_certificate(leat, tls)
    exchange(files, certs, key=False)
    line = reload(leat, "reload", "failed,")
    assert line.level == "error"
    assert "does not belong to the certificate" in line.text
    assert ".yaml:3: listeners[0].cert:" in line.text
    assert shown_certificate(leat, tls) == old


def test_a_broken_file_changes_nothing(run_file, brokers, files, tls):
    leat = run_file(configuration(brokers[0]))
    leat.file.write_text(configuration(brokers[1], "timeouts: { tls: never }\n"))
    line = reload(leat, "reload", "failed,")
    assert "timeouts.tls: expected" in line.text
    amqp_wire.Client(leat.port, tls).connect().close_politely()
    assert [len(one.sessions) for one in brokers] == [1, 0]


def test_new_sessions_go_to_the_new_backend(run_file, brokers, files, tls):
    leat = run_file(configuration(brokers[0]))
    old = amqp_wire.Client(leat.port, tls).connect()
    leat.file.write_text(configuration(brokers[1]))
    reload(leat, "reloaded:")
    amqp_wire.Client(leat.port, tls).connect().close_politely()
    assert [len(one.sessions) for one in brokers] == [1, 1]
    old.close_politely()
    leat.wait("closed", number=1)
    closed = [line.fields["backend"] for line in leat.find("closed")]
    assert sorted(closed) == sorted(f"127.0.0.1:{one.port}" for one in brokers)


def test_limits_and_log_level_follow(run_file, brokers, files, tls):
    leat = run_file(configuration(brokers[0]))
    leat.file.write_text(configuration(brokers[0], "limits: { sessions: 1 }\n"
                                                   "logging: { level: debug }\n"))
    reload(leat, "reloaded:")
    first = amqp_wire.Client(leat.port, tls).connect()
    assert amqp_wire.Client(leat.port, tls).answer_to_open()[0] == 530
    first.close_politely()
    assert leat.wait(state="open").level == "debug"


def test_what_cannot_change_is_named(run_file, brokers, files, tls):
    leat = run_file(configuration(brokers[0]))
    leat.file.write_text(configuration(brokers[1], address="amqps://127.0.0.1:1"))
    line = reload(leat, "reload", "failed,")
    assert "listeners[0].address: it can't change without a restart" in line.text
    leat.file.write_text(configuration(brokers[1], "workers: 7\n"))
    assert "workers: it can't change" in reload(leat, "reload", "failed,").text
    amqp_wire.Client(leat.port, tls).connect().close_politely()
    assert [len(one.sessions) for one in brokers] == [1, 0]


def test_a_storm_of_connections_notices_nothing(run_file, brokers, files, certs, tls):
    leat = run_file(configuration(brokers[0]))
    sessions = [amqp_wire.Client(leat.port, tls).connect() for _ in range(20)]

    def come_and_go(_):
        return shown_certificate(leat, tls)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        shown = threads.map(come_and_go, range(400))
        for number in range(10):
            pair = (certs.cert, certs.key) if number % 2 else (certs.rsa_cert, certs.rsa_key)
            for source, name in zip(pair, ("cert.pem", "key.pem")):
                shutil.copy(source, files / name)
            reload(leat, "reloaded:")
        assert len(set(shown)) == 2
    for one in sessions:
        one.close_politely()
    status = leat.status()
    assert (status["opened"], status["failed"], status["refused"]) == (420, 0, 0)


def offered_tune(leat, tls):
    """What a new client is offered: channel_max, frame_max, heartbeat."""
    client = amqp_wire.Client(leat.port, tls)
    client.start()
    offered = struct.unpack(">HIH", client.expect("connection.tune").args)
    client.close()
    return offered


def test_limits_of_a_broker_that_is_gone_are_forgotten(run_file, run_broker, files, tls):
    small = run_broker(amqp_wire.serving(amqp_wire.Tune(100, 8192, 0)))
    large = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = run_file(configuration(small))
    amqp_wire.Client(leat.port, tls).connect().close_politely()
    assert offered_tune(leat, tls)[:2] == (100, 8192)
    leat.file.write_text(configuration(large))
    reload(leat, "reloaded:")
    assert offered_tune(leat, tls)[:2] == (2047, 131072)


def test_a_pipe_in_place_of_the_file_changes_nothing(run_file, brokers, files, tls):
    leat = run_file(configuration(brokers[0]))
    leat.file.unlink()
    os.mkfifo(leat.file)
    reload(leat, "reload", "failed,")
    amqp_wire.Client(leat.port, tls).connect().close_politely()


def test_reloads_while_files_are_looked_at(run_file, serving, certs, tmp_path):
    """A reload may come at any moment of the watch on files, which goes on off the loop."""
    names = [f"c{number}" for number in range(40)]
    leat = run_file(
        f"listeners: [{{ address: 'amqps://127.0.0.1:0', cert: {certs.cert}, key: {certs.key},"
        f" certificates: [{', '.join(names)}] }}]\ncertificates:\n"
        + "".join(f"  {name}: {{ cert: {certs.cert}, key: {certs.key}, names: [{name}.example] }}\n"
                  for name in names)
        + f"backends: {{ b: {{ address: 'amqp://127.0.0.1:{serving.port}' }} }}\n"
        "tls: { recheck: 100ms }\n")
    for _ in range(40):
        reload(leat, "reloaded:")
    assert leat.status()["failed"] == 0
