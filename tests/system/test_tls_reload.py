# SPDX-License-Identifier: Apache-2.0
"""New certificates while clients come and go: `leatctl reload` answers when they are in use."""
import concurrent.futures
import shutil

import pytest

import amqp_wire
import control
import leat as leats
from authority import PASSPHRASE, encrypted, subject

NAME = "orders.example"


def echoing(session):
    """A broker that sends back whatever frames it is sent."""
    session.handshake(amqp_wire.NO_HEARTBEAT)
    while (received := session.recv_frame()).name != "connection.close":
        session.send(amqp_wire.frame(*received))
    session.send(amqp_wire.CLOSE_OK)
    session.recv_to_end()


@pytest.fixture
def echo(run_broker):
    return run_broker(echoing)


@pytest.fixture(scope="module")
def renewed(world):
    """The pairs that take turns: of the listener and of NAME, first and second."""
    return {(name, turn): world.servers.issue(f"{name}{turn}", [NAME])
            for name in ("listener", "orders") for turn in (0, 1)}


@pytest.fixture
def files(renewed, tmp_path):
    for name in ("listener", "orders"):
        put(renewed[name, 0], tmp_path, name)
    return tmp_path


def put(pair, directory, name):
    shutil.copy(pair.cert, directory / f"{name}.pem")
    shutil.copy(pair.key, directory / f"{name}_key.pem")


def configuration(broker, more="", passphrase=""):
    return ("listeners:\n  - address: amqps://127.0.0.1:0\n    cert: listener.pem\n"
            f"    key: listener_key.pem\n{passphrase}    certificates: [orders]\n"
            "certificates:\n  orders:\n    cert: orders.pem\n    key: orders_key.pem\n"
            f"    names: [{NAME}]\n"
            f"backends: {{ broker: {{ address: 'amqp://127.0.0.1:{broker.port}' }} }}\n" + more)


def shown(leat, context):
    """Whom the certificates name that the next connections are shown: the listener's, NAME's."""
    names = []
    for name in (None, NAME):
        client = amqp_wire.Client(leat.port, context, server_name=name)
        names.append(subject(client.sock))
        client.close()
    return names


def exchange(client, number):
    """One message there and back."""
    client.send(amqp_wire.frame(amqp_wire.BODY, 1, b"message %d" % number))
    assert client.recv_frame().payload == b"message %d" % number


def test_the_very_next_connection_has_what_was_reloaded(run_asked, world, echo, renewed, files):
    leat = run_asked(configuration(echo, "workers: 2\n"))
    context = world.context()
    session = amqp_wire.Client(leat.port, context).connect()
    for turn in (1, 0) * 5:
        before = shown(leat, context)
        for name in ("listener", "orders"):
            put(renewed[name, turn], files, name)
        assert shown(leat, context) == before  # files alone change nothing
        assert control.done(leat.socket, "reload").startswith("reloaded")
        for _ in range(4):  # on either worker
            assert shown(leat, context) == [f"listener{turn}", f"orders{turn}"]
        exchange(session, turn)
    session.close_politely()


def test_a_storm_notices_no_reload(run_asked, world, echo, renewed, files):
    leat = run_asked(configuration(echo, "workers: 2\n"))
    sessions = [amqp_wire.Client(leat.port, world.context(), server_name=name).connect()
                for name in (None, NAME) * 10]
    context = world.context()

    def come_and_go(number):
        client = amqp_wire.Client(leat.port, context,
                                  server_name=NAME if number % 2 else None).connect()
        name = subject(client.sock)
        exchange(client, number)
        client.close_politely()
        return name

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        storm = [threads.submit(come_and_go, number) for number in range(400)]
        for turn in (1, 0) * 4:
            for name in ("listener", "orders"):
                put(renewed[name, turn], files, name)
            control.done(leat.socket, "reload")
            assert shown(leat, context) == [f"listener{turn}", f"orders{turn}"]
            for number, session in enumerate(sessions):
                exchange(session, number)
        names = [one.result() for one in storm]
    assert set(names) <= {"listener0", "listener1", "orders0", "orders1"}
    for number, name in enumerate(names):
        assert name.startswith("orders" if number % 2 else "listener")
    for session in sessions:
        session.close_politely()
    counters = control.answer(leat.socket, "status")["counters"]
    assert (counters["opened"], counters["refused"]) == (420, 0)
    assert counters["failed"] == counters["silent"]  # those that only looked at the certificate


@pytest.mark.parametrize("name, place", [("listener", ".yaml:4: listeners[0].cert: "),
                                         ("orders", ".yaml:9: certificates.orders.cert: ")])
def test_a_pair_that_does_not_match_keeps_the_old_one(run_asked, world, echo, renewed, files,
                                                      name, place):
    leat = run_asked(configuration(echo))
    context = world.context()
    session = amqp_wire.Client(leat.port, context).connect()
    shutil.copy(renewed[name, 1].cert, files / f"{name}.pem")
    sentence = control.refused(leat.socket, "reload")
    assert place in sentence and "does not belong to the certificate" in sentence
    assert f"{name}_key.pem" in sentence and f"{name}.pem" in sentence
    assert sentence in leat.wait("reload", "failed,").text
    assert shown(leat, context) == ["listener0", "orders0"]
    exchange(session, 1)
    session.close_politely()
    shutil.copy(renewed[name, 1].key, files / f"{name}_key.pem")
    control.done(leat.socket, "reload")
    assert f"{name}1" in shown(leat, context)


WITH_PASSPHRASE = "    key_passphrase: word.txt\n"


def test_a_passphrase_opens_the_key(run_asked, world, echo, renewed, files):
    encrypted(renewed["listener", 0].key, files / "listener_key.pem")
    (files / "word.txt").write_text(PASSPHRASE + "\n")
    leat = run_asked(configuration(echo, passphrase=WITH_PASSPHRASE))
    assert shown(leat, world.context()) == ["listener0", "orders0"]


@pytest.mark.parametrize("word, place, why", [
    ("wrong\n", "key", "word.txt does not open it"),
    ("\n", "key_passphrase", "word.txt: its first line, which is to be the passphrase, is empty"),
    (None, "key_passphrase", "word.txt: No such file")])
def test_a_passphrase_that_is_none(run_asked, world, echo, renewed, files, word, place, why):
    leat = run_asked(configuration(echo))
    encrypted(renewed["listener", 1].key, files / "listener_key.pem")
    shutil.copy(renewed["listener", 1].cert, files / "listener.pem")
    if word:
        (files / "word.txt").write_text(word)
    leat.file.write_text(f"control: {{ socket: {leat.socket.name} }}\n"
                         + configuration(echo, passphrase=WITH_PASSPHRASE))
    line = {"key": 5, "key_passphrase": 6}[place]
    for sentence in (leats.run("check", "-c", leat.file).stderr,
                     control.refused(leat.socket, "reload")):
        assert f".yaml:{line}: listeners[0].{place}: " in sentence
        assert why in sentence
        assert PASSPHRASE not in sentence
    assert shown(leat, world.context()) == ["listener0", "orders0"]


def test_an_encrypted_key_without_a_passphrase(run_asked, world, echo, renewed, files):
    leat = run_asked(configuration(echo))
    encrypted(renewed["listener", 0].key, files / "listener_key.pem")
    sentence = control.refused(leat.socket, "reload")
    assert ".yaml:5: listeners[0].key: " in sentence and "is encrypted" in sentence
    assert shown(leat, world.context()) == ["listener0", "orders0"]


SECOND = ("  - address: amqps://127.0.0.1:0\n    cert: second.pem\n    key: second_key.pem\n"
          "certificates:\n")


def test_changed_files_of_a_listener_are_told_once(run_asked, world, echo, renewed, files):
    put(renewed["listener", 0], files, "second")
    leat = run_asked(configuration(echo, "tls: { recheck: 100ms }\n")
                     .replace("certificates:\n", SECOND), listeners=2)
    context = world.context()
    put(renewed["orders", 1], files, "orders")
    line = leat.wait("have", "changed:")
    assert "files of TLS of listeners[0] have changed" in line.text
    assert line.level == "warn" and "leatctl reload" in line.text
    assert shown(leat, context) == ["listener0", "orders0"]
    put(renewed["listener", 1], files, "second")  # found by a later look, at both
    assert "files of TLS of listeners[1] have" in leat.wait("have", "changed:", number=1).text
    control.done(leat.socket, "reload")
    assert shown(leat, context) == ["listener0", "orders1"]
    put(renewed["listener", 1], files, "listener")  # told again, of what is in use now
    assert "files of TLS of listeners[0] have" in leat.wait("have", "changed:", number=2).text
