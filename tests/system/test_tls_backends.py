# SPDX-License-Identifier: Apache-2.0
"""TLS to each backend as it says: authorities, name, certificate, revocation. What is wrong with
one is told and the next is tried; files are read again by themselves."""
import concurrent.futures
import os
import shutil
import time

import pytest

import amqp_wire
import control
from authority import PASSPHRASE, Authority, encrypted
from leat import NO_BROKER


@pytest.fixture
def tls_broker(run_broker, world):
    """Starts brokers that open sessions and show PAIR."""
    def run(pair=None):
        return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT), world.broker_context(pair))

    return run


def backend(broker, more, name="broker", scheme="amqps"):
    return f"  {name}: {{ address: '{scheme}://127.0.0.1:{broker.port}'{more} }}\n"


def configuration(*backends, more=""):
    return ("listeners: [{ address: 'amqp://127.0.0.1:0' }]\nbackends:\n" + "".join(backends)
            + more)


def login(leat):
    return amqp_wire.Client(leat.port).answer_to_open()


def test_each_backend_has_its_own_settings(run_asked, tls_broker, world):
    strange = tls_broker(world.strangers.issue("strange", ["strange.example"]))
    ordinary = tls_broker()
    leat = run_asked(configuration(
        backend(ordinary, f", ca: {world.servers.cert}, name: localhost", "ordinary"),
        backend(strange, f", ca: {world.strangers.cert}, name: strange.example, "
                         "max_version: TLSv1.2, ciphers: ECDHE-ECDSA-AES256-GCM-SHA384",
                "strange")))
    clients = [amqp_wire.Client(leat.port).connect() for _ in range(4)]
    told = {one["backend"]: one["backend_tls"] for one in control.sessions(leat.socket)}
    assert told["ordinary"]["version"] == "TLSv1.3"
    assert told["ordinary"]["peer_certificate"] == "CN=default"
    assert told["strange"] == {
        "version": "TLSv1.2", "cipher": "ECDHE-ECDSA-AES256-GCM-SHA384", "resumed": False,
        "server_name": "strange.example", "peer_certificate": "CN=strange"}
    assert len(ordinary.sessions) == len(strange.sessions) == 2
    for client in clients:
        client.close_politely()


@pytest.fixture(scope="module")
def bad(world):
    """Brokers' certificates that are not to be taken, and the revocation list that says so."""
    pairs = {"expired": world.servers.issue_expired("expired"),
             "elsewhere": world.servers.issue("elsewhere", ["elsewhere.example"]),
             "unknown": world.strangers.issue("unknown"),
             "revoked": world.servers.issue("revoked")}
    world.servers.revoke(pairs["revoked"])
    pairs["crl"] = world.servers.crl("with_revoked")
    return pairs


BAD = [("expired", "it expired on 2020-02-01"), ("elsewhere", "it is for elsewhere.example"),
       ("unknown", 'its authority "CN=strangers" is unknown'), ("revoked", "it was revoked")]


@pytest.mark.parametrize("who, why", BAD)
def test_a_bad_backend_is_passed_over_and_the_reason_told(run_asked, tls_broker, world, bad, who,
                                                          why):
    broken, good = tls_broker(bad[who]), tls_broker()
    trust = f", ca: {world.servers.cert}, crl: {bad['crl']}, name: localhost"
    leat = run_asked(configuration(backend(broken, trust, "broken"), backend(good, trust, "good")))
    assert [login(leat) for _ in range(4)] == ["opened"] * 4
    assert not broken.sessions
    told = {one["name"]: one for one in control.answer(leat.socket, "backends")["backends"]}
    assert told["good"]["state"] == "up" and told["good"]["opened"] == 4
    assert told["broken"]["state"] == "back-off" and told["broken"]["opened"] == 0
    reason = told["broken"]["last_failure"]["reason"]
    assert reason.startswith("the certificate of localhost was not accepted: ") and why in reason
    assert why in leat.wait("failed:").text.replace('\\"', '"')


@pytest.mark.parametrize("who, why", BAD)
def test_with_no_other_backend_the_client_is_refused(run_file, tls_broker, world, bad, who, why):
    broken = tls_broker(bad[who])
    leat = run_file(configuration(backend(
        broken, f", ca: {world.servers.cert}, crl: {bad['crl']}, name: localhost")))
    assert login(leat) == NO_BROKER
    failure = leat.wait("refused").fields["last_failure"].replace('\\"', '"')
    assert why in failure and f"127.0.0.1:{broken.port}" in failure
    assert not broken.sessions


@pytest.mark.parametrize("who", ["expired", "elsewhere", "unknown"])
def test_only_who_says_so_skips_verification(run_file, tls_broker, bad, who):
    broker = tls_broker(bad[who])
    leat = run_file(configuration(backend(broker, ", insecure_skip_verify: true")))
    assert login(leat) == "opened"


def put(source, target):
    """Replaces TARGET whole, as a tool that renews certificates does."""
    shutil.copy(source, f"{target}.new")
    os.replace(f"{target}.new", target)


def until(leat, wanted):
    """Logs in until the answer is WANTED, for what changes by itself."""
    deadline = time.monotonic() + amqp_wire.SECONDS
    while (answer := login(leat)) != wanted:
        assert time.monotonic() < deadline, f"still {answer}:\n{leat.text()}"


RECHECK = "tls: { recheck: 100ms }\n"


def test_authorities_exchanged_on_disk_are_used_without_a_reload(run_asked, tls_broker, world,
                                                                 tmp_path):
    broker = tls_broker(world.strangers.issue("late", ["localhost"]))
    put(world.strangers.cert, tmp_path / "ca.pem")
    leat = run_asked(configuration(backend(broker, ", ca: ca.pem, name: localhost"), more=RECHECK))
    session = amqp_wire.Client(leat.port).connect()
    put(world.servers.cert, tmp_path / "ca.pem")
    until(leat, NO_BROKER)
    line = leat.wait("renewed:")
    assert f"({tmp_path}/ca.pem) was renewed: its files had changed" in line.text
    put(world.strangers.cert, tmp_path / "ca.pem")
    until(leat, "opened")
    session.close_politely()
    assert control.answer(leat.socket, "status")["configuration"]["reloads"] == 0


def test_what_is_in_use_by_now_is_told(run_asked, tls_broker, world, tmp_path):
    put(world.servers.cert, tmp_path / "ca.pem")
    leat = run_asked(configuration(backend(tls_broker(), ", ca: ca.pem, name: localhost"),
                                   more=RECHECK))
    context, = control.answer(leat.socket, "tls")["contexts"]
    assert context["authorities"] == 1
    (tmp_path / "both.pem").write_text(world.servers.cert.read_text()
                                       + world.strangers.cert.read_text())
    put(tmp_path / "both.pem", tmp_path / "ca.pem")
    deadline = time.monotonic() + amqp_wire.SECONDS
    while not leat.find("renewed:") and time.monotonic() < deadline:
        assert login(leat) == "opened"
    leat.wait("renewed:")
    told = control.answer(leat.socket, "tls")
    assert told["contexts"][0]["authorities"] == 2 and "failure" not in told["contexts"][0]
    assert told["cache"]["rechecks"] > 0 and told["cache"]["builds"] == 2
    assert told["trust_stores"]["parses"] == 2


def test_tls_is_shown_to_a_person(run_asked, tls_broker, world):
    leat = run_asked(configuration(
        backend(tls_broker(), f", ca: {world.servers.cert}, name: localhost, "
                f"crl: {world.servers.crl()}, cert: {world.alice.cert}, key: {world.alice.key}"),
        backend(tls_broker(), ", insecure_skip_verify: true", "careless")))
    login(leat)
    shown = control.done(leat.socket, "tls")
    first, second, cache, last = shown.split("\n\n")
    facts = {line[:19].strip(): line[20:] for line in first.splitlines()}
    assert facts["subject"] == "CN=alice" and facts["issuer"] == "CN=clients"
    assert facts["trusts"] == str(world.servers.cert) and facts["authorities"] == "1"
    assert facts["days left"] in ("29", "30") and facts["revocation lists"] == "1"
    assert facts["next update"].startswith("20") and facts["the last until"].startswith("20")
    assert second == ("used by             backends.careless\n"
                      "trusts              anyone: insecure_skip_verify")
    assert "found ready " in cache and "built               2\n" in cache
    assert last == "2 contexts, 2 built since the start\n"


def test_a_revocation_is_noticed_without_a_reload(run_file, tls_broker, tmp_path):
    fresh = Authority(tmp_path, "fresh")
    pair = fresh.issue("soon revoked")
    put(fresh.crl(), tmp_path / "crl.pem")
    leat = run_file(configuration(backend(
        tls_broker(pair), f", ca: {fresh.cert}, crl: crl.pem, name: localhost"), more=RECHECK))
    assert login(leat) == "opened"
    fresh.revoke(pair)
    put(fresh.crl("newer"), tmp_path / "crl.pem")
    until(leat, NO_BROKER)
    assert "it was revoked" in leat.wait("refused").fields["last_failure"]


def test_broken_authorities_keep_the_old_and_say_why(run_asked, tls_broker, world, tmp_path):
    broker = tls_broker()
    put(world.servers.cert, tmp_path / "ca.pem")
    leat = run_asked(configuration(backend(broker, ", ca: ca.pem, name: localhost"), more=RECHECK))
    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
    put(tmp_path / "broken.pem", tmp_path / "ca.pem")
    deadline = time.monotonic() + amqp_wire.SECONDS
    while not leat.find("stays") and time.monotonic() < deadline:
        assert login(leat) == "opened"
    line = leat.wait("stays")
    assert line.level == "error" and "ca.pem) stays as it was: its files have changed, but CA" \
        in line.text
    context, = control.answer(leat.socket, "tls")["contexts"]
    assert context["authorities"] == 1 and "ca.pem" in context["failure"]
    assert f"not read again      {context['failure']}\n" in control.done(leat.socket, "tls")
    for _ in range(20):
        assert login(leat) == "opened"
    assert len(leat.find("stays")) == 1


def test_leat_s_own_key_may_have_a_passphrase(run_file, run_broker, world, tmp_path):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT),
                        world.broker_context(client_ca=world.clients.cert))
    encrypted(world.alice.key, tmp_path / "key.pem")
    (tmp_path / "word.txt").write_text(PASSPHRASE)
    leat = run_file(configuration(backend(
        broker, f", ca: {world.servers.cert}, name: localhost, cert: {world.alice.cert}, "
                "key: key.pem, key_passphrase: word.txt")))
    assert login(leat) == "opened"


def test_many_first_sessions_build_once(run_asked, tls_broker, world):
    broker = tls_broker()
    leat = run_asked("workers: 2\n" + configuration(
        backend(broker, f", ca: {world.servers.cert}, name: localhost")))
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: login(leat), range(300)))
    assert set(answers) == {"opened"}
    cache = control.answer(leat.socket, "tls")["cache"]
    assert (cache["builds"], cache["failures"], cache["entries"]) == (1, 0, 1)
    assert cache["hits"] >= 300


def test_two_backends_of_one_authority_parse_it_once(run_asked, tls_broker, world):
    trust = f", ca: {world.servers.cert}"
    brokers = tls_broker(), tls_broker()
    leat = run_asked(configuration(
        backend(brokers[0], trust + ", name: localhost", "first"),
        backend(brokers[1], trust + ", name: localhost, max_version: TLSv1.2", "second")))
    assert [login(leat) for _ in range(4)] == ["opened"] * 4
    assert all(len(one.sessions) == 2 for one in brokers)
    told = control.answer(leat.socket, "tls")
    assert told["cache"]["builds"] == 2
    assert told["trust_stores"] == {"stores": 1, "parses": 1, "shared": 1}


def test_a_reload_looks_at_the_files_of_backends_at_once(run_asked, tls_broker, world, tmp_path):
    put(world.servers.cert, tmp_path / "ca.pem")
    leat = run_asked(configuration(backend(tls_broker(), ", ca: ca.pem, name: localhost"),
                                   more="tls: { recheck: 24h }\n"))
    assert login(leat) == "opened"
    put(world.strangers.cert, tmp_path / "ca.pem")
    assert login(leat) == "opened"
    control.done(leat.socket, "reload")
    assert login(leat) == NO_BROKER
    (tmp_path / "ca.pem").write_text("noise\n")
    sentence = control.refused(leat.socket, "reload")
    assert "backends.broker.ca: CA file " in sentence and "ca.pem" in sentence
    put(world.servers.cert, tmp_path / "ca.pem")
    for _ in range(2):
        control.done(leat.socket, "reload")
    assert control.answer(leat.socket, "tls")["cache"]["builds"] == 3
    assert control.answer(leat.socket, "tls")["contexts"][0].get("failure") is None
