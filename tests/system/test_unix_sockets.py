# SPDX-License-Identifier: Apache-2.0
"""UNIX sockets in place of TCP, to clients and to brokers."""
import os
import signal
import socket
import stat

import pytest

import amqp_wire
import control
import flow
import leat as leats
import proxy_header

LOCAL_ONLY = (403, "ACCESS_REFUSED - this user can only connect from the machine of the proxy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "amqp.sock"


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def start(run_file, path, tmp_path, certs):
    """Starts leats that listen at `path` before BROKER; the control socket is `socket`."""
    def run(broker, keys="", scheme="amqp+unix", more=""):
        if scheme.startswith("amqps"):
            keys += f", cert: {certs.cert}, key: {certs.key}"
        leat = run_file(
            f"listeners: [{{ address: '{scheme}://{path}'{keys} }}]\n"
            f"backends: {{ a: {{ address: 'amqp://127.0.0.1:{getattr(broker, 'port', 1)}' }} }}\n"
            f"control: {{ socket: '{tmp_path}/leat.sock' }}\n" + more)
        leat.socket = tmp_path / "leat.sock"
        return leat

    return run


@pytest.fixture
def leat(start, broker):
    return start(broker)


def refused(path):
    done = leats.run("--listen", f"amqp+unix://{path}", "--backend", "amqp://127.0.0.1:1")
    assert done.returncode != 0, done
    return done.stderr.splitlines()[-1]


# Clients.

def test_a_session(leat, path):
    assert leat.ports == [str(path)]
    client = amqp_wire.Client(path).connect()
    assert leat.wait("opened").fields["peer"] == "unix"
    told, = control.sessions(leat.socket, "--client", "unix")
    assert (told["client"], told["listener"]) == ("unix", f"amqp+unix://{path}")
    assert len(control.sessions(leat.socket, "--listener", f"amqp+unix://{path}")) == 1
    client.close_politely()
    assert leat.wait("closed").fields["by"] == "client"


def test_tls(start, broker, path, tls):
    leat = start(broker, scheme="amqps+unix")
    client = amqp_wire.Client(path, tls).connect()
    assert leat.wait("opened").fields["tls"] == client.sock.version()
    client.close_politely()


def test_its_clients_are_on_this_machine(leat, path):
    assert amqp_wire.Client(path).answer_to_open(user="guest") == "opened"


@pytest.mark.parametrize("source, answer", [("127.0.0.9", "opened"), ("203.0.113.7", LOCAL_ONLY)])
def test_a_proxy_over_it(start, broker, path, source, answer):
    leat = start(broker, ", proxy_protocol: [unix]")
    client = amqp_wire.Client(path, first=proxy_header.v1((source, 7)))
    assert client.answer_to_open(user="guest") == answer
    line = leat.wait("opened" if answer == "opened" else "refused", via="unix")
    assert line.fields["peer"] == f"{source}:7"


def test_a_thousand_frames_and_a_stalled_reader(start, run_broker, path):
    """Back-pressure is as over TCP: what is not read is not lost."""
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    start(broker)
    client = amqp_wire.Client(path).connect()
    data = amqp_wire.frame(amqp_wire.BODY, 1, b"x" * 10000) * 1000
    client.send(data)
    client.close()
    broker.wait_ended()
    assert broker.sessions[0].received == data


# The file.

@pytest.mark.parametrize("keys, mode", [("", 0o660), (", mode: 0600", 0o600), (", mode: 666", 0o666)])
def test_its_mode(start, broker, path, keys, mode):
    before = os.umask(0o077)
    try:
        leat = start(broker, keys)
    finally:
        os.umask(before)
    info = path.lstat()
    assert stat.S_ISSOCK(info.st_mode) and stat.S_IMODE(info.st_mode) == mode
    leat.stop()
    assert not path.exists()


def test_a_stale_one_is_replaced(start, broker, path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
    start(broker)
    amqp_wire.Client(path).connect().close_politely()


def test_what_a_killed_leat_left_is_replaced(start, broker, path):
    leats.Leat(f"amqp+unix://{path}", "amqp://127.0.0.1:1").kill()
    assert path.exists()
    start(broker)
    amqp_wire.Client(path).connect().close_politely()


def test_a_live_one_is_refused_and_stays(leat, path):
    assert f"answers at {path}, process {leat.process.pid}: stop it" in refused(path)
    amqp_wire.Client(path).connect().close_politely()


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_is_refused_and_stays(path, tmp_path, kind):
    if kind == "file":
        path.write_text("precious")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    before = path.lstat()
    assert f"{path} is there and is no socket" in refused(path)
    assert path.lstat().st_ino == before.st_ino


def test_no_directory(tmp_path):
    assert "its directory does not exist" in refused(tmp_path / "not" / "there.sock")


def test_another_in_its_place_is_left_alone(leat, path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        leat.stop()
        assert path.exists()


def test_a_drain_removes_it_at_once(leat, path):
    """So that the next leat can have the name while sessions of this one still last."""
    client = amqp_wire.Client(path).connect()
    leat.process.send_signal(signal.SIGTERM)
    leat.wait("draining:")
    flow.await_true(lambda: not path.exists())
    client.close_politely()


def test_a_reload_keeps_it(leat, path):
    before = path.lstat()
    leat.process.send_signal(signal.SIGHUP)
    leat.wait("reloaded:")
    assert path.lstat().st_ino == before.st_ino
    amqp_wire.Client(path).connect().close_politely()


def test_no_reload_changes_its_mode(start, broker, path):
    leat = start(broker, ", mode: 0600")
    leat.file.write_text(leat.file.read_text().replace("0600", "0666"))
    leat.process.send_signal(signal.SIGHUP)
    assert "listeners[0].mode: it can't change without a restart" in leat.wait("reload").text
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


# Brokers.

@pytest.mark.parametrize("with_tls", [False, True])
def test_a_broker(plain_leat, run_broker, certs, path, with_tls):
    context = certs.server_context() if with_tls else None
    run_broker(amqp_wire.serving(), context, address=path)
    more = ["--backend-ca", certs.ca, "--backend-name", "localhost"] if with_tls else []
    leat = plain_leat(f"amqp{'s' if with_tls else ''}+unix://{path}", more=more)
    amqp_wire.Client(leat.port).connect().close_politely()
    assert leat.wait("opened").fields["backend"] == f"unix:{path}"


def test_a_broker_that_is_not_there(plain_leat, path):
    leat = plain_leat(f"amqp+unix://{path}")
    assert amqp_wire.Client(leat.port).answer_to_open() == leats.NO_BROKER
    assert str(path) in leat.wait("failed:").fields["reason"]


def test_both_ends(start, run_broker, run_file, path, tmp_path):
    """From one UNIX socket to another; the broker's PROXY header names no address it could."""
    inner = tmp_path / "inner.sock"
    headers = []

    def script(session):
        headers.append(proxy_header.take_v1(session))
        amqp_wire.serving()(session)

    run_broker(script, address=inner)
    run_file(f"listeners: [{{ address: 'amqp+unix://{path}' }}]\n"
             f"backends: {{ a: {{ address: 'amqp+unix://{inner}', proxy_protocol: v1 }} }}\n")
    amqp_wire.Client(path).connect().close_politely()
    assert headers == [proxy_header.UNKNOWN]


def test_a_header_for_a_client_of_a_unix_socket(run_broker, run_file, path):
    """Brokers refuse a header without addresses: it has those of leat's own connection."""
    headers = []

    def script(session):
        headers.append((proxy_header.take_v2(session), session.sock.getpeername()))
        amqp_wire.serving()(session)

    broker = run_broker(script)
    run_file(f"listeners: [{{ address: 'amqp+unix://{path}' }}]\n"
             f"backends: {{ a: {{ address: 'amqp://127.0.0.1:{broker.port}',"
             " proxy_protocol: v2 } }\n")
    amqp_wire.Client(path).connect().close_politely()
    (header, peer), = headers
    assert (header.source, header.destination) == (peer, ("127.0.0.1", broker.port))
