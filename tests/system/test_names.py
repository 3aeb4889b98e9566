# SPDX-License-Identifier: Apache-2.0
"""Backends by name: looked up again and again, all addresses used."""
import collections

import pytest

import amqp_wire
import control
import dns
import flow
import leat as leats
import process
from leat import NO_BROKER

NAME = "rabbit.example"
HOSTS = ["127.0.0.2", "127.0.0.3"]


@pytest.fixture
def brokers(run_broker):
    """Two brokers on one port of two addresses."""
    script = amqp_wire.serving(amqp_wire.NO_HEARTBEAT)
    while True:
        first = run_broker(script, address=(HOSTS[0], 0))
        try:
            return [first, run_broker(script, address=(HOSTS[1], first.port))]
        except OSError:  # the port is somebody else's there
            continue


@pytest.fixture
def start(plain_leat, tmp_path):
    """Starts leats whose backends are named by the server DNS; their control socket is `socket`."""
    def run(server, *backends, more=(), **options):
        path = tmp_path / f"leat{server.address}.sock"
        leat = plain_leat(*backends, more=["--dns.servers", server.address, "--control-socket",
                                           path, "--workers", 1, *more], **options)
        leat.socket = path
        return leat

    return run


def url(port, name=NAME):
    return f"amqp://{name}:{port}"


def open_and_close(leat):
    amqp_wire.Client(leat.port).connect().close_politely()


def address_used(leat):
    """The address that a session of LEAT is connected to."""
    since = len(leat.lines)
    open_and_close(leat)
    return leat.wait("opened", since=since).fields["backend_address"]


def await_address(leat, host):
    """Opens sessions until one is connected to HOST."""
    flow.await_true(lambda: address_used(leat).startswith(host))


def test_the_log_and_control_show_name_and_address(start, run_dns, brokers):
    leat = start(run_dns(**{NAME: HOSTS[:1]}), url(brokers[0].port))
    client = amqp_wire.Client(leat.port).connect()
    opened = leat.wait("opened").fields
    assert opened["backend"] == f"{NAME}:{brokers[0].port}"
    assert opened["backend_address"] == f"{HOSTS[0]}:{brokers[0].port}"
    told, = control.sessions(leat.socket)
    assert told["backend_address"] == f"{HOSTS[0]}:{brokers[0].port}"
    for filter_ in (f"{HOSTS[0]}:{brokers[0].port}", f"{NAME}:{brokers[0].port}"):
        assert len(control.sessions(leat.socket, "--backend", filter_)) == 1
    backend, = control.answer(leat.socket, "backends")["backends"]
    assert backend["address"] == f"{NAME}:{brokers[0].port}" and backend["state"] == "up"
    client.close_politely()


def test_sessions_go_round_the_addresses(start, run_dns, brokers):
    leat = start(run_dns(ttl=600, **{NAME: HOSTS}), url(brokers[0].port))
    used = [address_used(leat) for _ in range(6)]
    assert set(collections.Counter(used).values()) == {3} and used[:2] * 3 == used


def test_a_dead_address_costs_nothing(start, run_dns, brokers):
    """The other address is tried at once, and the backend is not held to have failed."""
    brokers[1].stop()
    leat = start(run_dns(ttl=600, **{NAME: HOSTS}), url(brokers[0].port))
    assert [address_used(leat) for _ in range(4)] == [f"{HOSTS[0]}:{brokers[0].port}"] * 4
    assert not leat.find("failed:")


def test_a_name_is_looked_up_again_after_its_ttl(start, run_dns, brokers):
    server = run_dns(ttl=0, **{NAME: HOSTS[:1]})
    leat = start(server, url(brokers[0].port))
    assert address_used(leat).startswith(HOSTS[0])
    server.names[NAME] = HOSTS[1:]
    await_address(leat, HOSTS[1])


def test_a_name_is_not_looked_up_again_before(start, run_dns, brokers):
    server = run_dns(ttl=600, **{NAME: HOSTS[:1]})
    leat = start(server, url(brokers[0].port))
    for _ in range(5):
        open_and_close(leat)
    assert server.count(NAME) == 1


def test_ttl_max_is_over_the_answers(start, run_dns, brokers):
    server = run_dns(ttl=600, **{NAME: HOSTS[:1]})
    leat = start(server, url(brokers[0].port), more=["--dns.ttl_max", "1s"])
    assert address_used(leat).startswith(HOSTS[0])
    server.names[NAME] = HOSTS[1:]
    await_address(leat, HOSTS[1])


@pytest.mark.parametrize("answer, words", [
    (None, "rabbit.example"),
    ([], "rabbit.example"),
    (dns.SERVFAIL, "rabbit.example"),
    (dns.SILENT, "rabbit.example"),
], ids=["no such name", "no address", "failure", "silence"])
def test_a_name_that_is_not_found(start, run_dns, answer, words):
    server = run_dns(**({} if answer is None else {NAME: answer}))
    leat = start(server, url(5672), more=["--dns.timeout", "100ms"])
    assert amqp_wire.Client(leat.port).answer_to_open() == NO_BROKER
    failed = leat.wait("failed:")
    assert words in failed.fields["reason"] and "it goes last for 5 s" in failed.text
    assert words in leat.wait("refused").fields["last_failure"]
    backend, = control.answer(leat.socket, "backends")["backends"]
    assert backend["state"] == "back-off" and words in backend["last_failure"]["reason"]


def test_the_next_backend_takes_over_for_a_name_that_is_not_found(start, run_dns, brokers):
    leat = start(run_dns(), url(5672, "nowhere.example"), f"amqp://{HOSTS[0]}:{brokers[0].port}")
    for _ in range(4):
        open_and_close(leat)
    assert len(leat.find("failed:")) == 1


def test_ipv6(start, run_dns, run_broker):
    broker = run_broker(amqp_wire.serving(), address=("::1", 0))
    leat = start(run_dns(**{NAME: ["::1"]}), url(broker.port), f"amqp://[::1]:{broker.port}")
    assert address_used(leat) == f"[::1]:{broker.port}"
    open_and_close(leat)
    assert leat.wait("opened", number=1).fields["backend"] == f"[::1]:{broker.port}"


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_either_family_is_enough(start, run_dns, run_broker, host):
    broker = run_broker(amqp_wire.serving(), address=(host, 0))
    leat = start(run_dns(**{NAME: ["::1", "127.0.0.1"]}), url(broker.port))
    assert address_used(leat) in (f"[::1]:{broker.port}", f"127.0.0.1:{broker.port}")
    assert not leat.find("failed:")


def test_a_certificate_is_verified_for_the_name(start, run_dns, run_broker, certs):
    """localhost is what it is for; another name of the same address is not."""
    broker = run_broker(amqp_wire.serving(), certs.server_context())
    leat = start(run_dns(**{NAME: ["127.0.0.1"]}), f"amqps://localhost:{broker.port}",
                 more=["--backend-ca", certs.ca])
    open_and_close(leat)
    other = start(run_dns(**{NAME: ["127.0.0.1"]}), f"amqps://{NAME}:{broker.port}",
                  more=["--backend-ca", certs.ca])
    assert amqp_wire.Client(other.port).answer_to_open() == NO_BROKER
    assert NAME in other.wait("failed:").fields["reason"]


@pytest.mark.parametrize("key, text, sentence", [
    ("servers", "[ns.example]", "dns.servers: expected a numeric address"),
    ("servers", "['127.0.0.1:0']", 'dns.servers: a server has a port, got "127.0.0.1:0"'),
    ("servers", "[" + ", ".join(["127.0.0.1"] * 9) + "]",
     "dns.servers: expected at most 8 servers, got 9"),
    ("timeout", "0s", "dns.timeout: expected 100ms to 60s"),
    ("tries", "0", "dns.tries: expected 1 to 10"),
])
def test_check(tmp_path, key, text, sentence):
    file = tmp_path / "leat.yaml"
    file.write_text("listeners: [{ address: 'amqp://127.0.0.1:0' }]\n"
                    "backends: { a: { address: 'amqp://a.example' } }\n"
                    f"dns:\n  {key}: {text}\n")
    done = leats.run("check", "-c", file)
    assert done.returncode == 2 and f"{file}:4: {sentence}" in done.stderr, done


def test_no_reload_changes_the_servers(run_file, run_dns, brokers):
    text = ("listeners: [{{ address: 'amqp://127.0.0.1:0' }}]\n"
            "backends: {{ a: {{ address: 'amqp://%s:%d' }} }}\n"
            "dns: {{ servers: ['{}'] }}\n" % (NAME, brokers[0].port))
    server = run_dns(**{NAME: HOSTS[:1]})
    leat = run_file(text.format(server.address))
    leat.file.write_text(text.format("127.0.0.1"))
    leat.process.send_signal(leats.signal.SIGHUP)
    assert "dns: it can't change without a restart" in leat.wait("reload").text
    open_and_close(leat)


def test_a_name_that_leads_back_to_leat_begets_no_sessions(start, run_dns):
    """One login was enough to take every place that there is for handshakes."""
    server = run_dns(**{NAME: ["127.0.0.1"]})
    port, = process.free_ports(1)
    leat = start(server, url(port), listen=f"amqp://127.0.0.1:{port}")
    assert amqp_wire.Client(leat.port).answer_to_open() == NO_BROKER
    assert "it is a listener of this leat" in leat.wait("failed:").text
    assert leat.status()["accepted"] == 2  # the client, and leat itself once
