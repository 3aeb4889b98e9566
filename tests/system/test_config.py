# SPDX-License-Identifier: Apache-2.0
"""A configuration file: what it says is done, and what is wrong with it is named."""
import os
import shutil

import pytest

import amqp_wire
import leat as leats


@pytest.fixture
def brokers(run_broker):
    return [run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT)) for _ in range(2)]


def backends(brokers):
    lines = [f"  broker{number}: {{ address: 'amqp://127.0.0.1:{one.port}' }}"
             for number, one in enumerate(brokers)]
    return "backends:\n" + "\n".join(lines) + "\n"


PLAIN = "listeners:\n  - address: amqp://127.0.0.1:0\n"


def use(leat, vhost="/", **options):
    amqp_wire.Client(leat.port, **options).connect(vhost=vhost).close_politely()


def test_vhosts_go_where_they_are_routed(run_file, brokers):
    leat = run_file(PLAIN + backends(brokers) + """
farms:
  second: { backends: [broker1] }
vhosts:
  one: { backend: broker0 }
  "two of\\u00a0them": { farm: second }
""")
    for _ in range(3):
        use(leat, "one")
    use(leat, "two of\u00a0them")
    assert [len(one.sessions) for one in brokers] == [3, 1]
    code, text = amqp_wire.Client(leat.port).answer_to_open(vhost="three")
    assert (code, text) == (530, "NOT_ALLOWED - the proxy has no route for this vhost")
    leat.wait("refused", vhost="three", code=530)


def test_the_default_serves_what_is_not_named(run_file, brokers):
    leat = run_file(PLAIN + backends(brokers) + """
vhosts: { one: { backend: broker0 } }
default: { backend: broker1 }
""")
    for vhost in ("one", "two", "three"):
        use(leat, vhost)
    assert [len(one.sessions) for one in brokers] == [1, 2]


def test_backends_alone_are_one_farm(run_file, brokers):
    leat = run_file(PLAIN + backends(brokers))
    for _ in range(4):
        use(leat)
    assert [len(one.sessions) for one in brokers] == [2, 2]


def test_sessions_are_dealt_by_weight(run_file, brokers):
    leat = run_file(PLAIN + backends(brokers).replace(" }", ", weight: 3 }", 1))
    for _ in range(12):
        use(leat)
    assert [len(one.sessions) for one in brokers] == [9, 3]


def test_every_listener_has_its_own_certificate(run_file, brokers, certs, tls, tmp_path):
    for name in (certs.cert, certs.key, certs.rsa_cert, certs.rsa_key):
        shutil.copy(name, tmp_path)
    pairs = [(certs.cert, certs.key), (certs.rsa_cert, certs.rsa_key)]
    listeners = "".join(f"  - address: amqps://127.0.0.1:0\n    cert: {cert.name}\n"
                        f"    key: {key.name}\n" for cert, key in pairs)
    leat = run_file("listeners:\n" + listeners + backends(brokers), listeners=2)
    shown = []
    for port in leat.ports:
        client = amqp_wire.Client(port, tls).connect()
        shown.append(client.sock.getpeercert(binary_form=True))
        client.close_politely()
    assert shown[0] != shown[1]


def test_options_go_over_the_file(run_file, brokers):
    leat = run_file(PLAIN + backends(brokers) + "logging: { level: warn, trace: true }\n"
                    "limits: { sessions: 5 }\n", more=["--log-level", "info",
                                                      "--limits.sessions", "1"])
    first = amqp_wire.Client(leat.port).connect()
    assert amqp_wire.Client(leat.port).answer_to_open()[0] == 530
    first.close_politely()
    leat.wait("closed")
    assert [line for line in leat.find("basic.publish") + leat.find("connection.open")
            if line.level == "trace"]


@pytest.mark.parametrize("option", ["--listen", "--backend"])
def test_what_belongs_into_the_file_is_no_option_beside_it(tmp_path, brokers, option):
    file = tmp_path / "leat.yaml"
    file.write_text(PLAIN + backends(brokers))
    ended = leats.run("-c", file, option, "amqp://127.0.0.1:1")
    assert ended.returncode == 2 and option in ended.stderr


# leat check

@pytest.fixture
def check(tmp_path, brokers, certs):
    for name in (certs.cert, certs.key, certs.rsa_key, certs.expired_cert):
        shutil.copy(name, tmp_path / name.name)

    def run(cert=certs.cert, key=certs.key, more=""):
        file = tmp_path / "leat.yaml"
        file.write_text(f"listeners:\n  - address: amqps://127.0.0.1:0\n    cert: {cert.name}\n"
                        f"    key: {key.name}\n" + backends(brokers) + more)
        ended = leats.run("check", "-c", file)
        assert not leats.FAULT.search(ended.stderr), ended.stderr
        assert len(ended.stderr.splitlines()) == (1 if ended.returncode else 0)
        return ended

    return run


def test_check_says_what_there_is(check):
    ended = check()
    assert ended.returncode == 0
    assert "leat.yaml: ok: listeners=1 backends=2 farms=1 routes=1" in ended.stdout
    assert "is valid until" in ended.stdout


def test_check_finds_a_wrong_value(check):
    ended = check(more="timeouts:\n  tls: 0\n")
    assert ended.returncode == 2
    assert 'leat.yaml:9: timeouts.tls: expected 100ms to 24h, got "0"' in ended.stderr


def test_check_finds_an_unknown_key(check):
    ended = check(more="timeouts:\n  tsl: 5s\n")
    assert ended.returncode == 2
    assert 'leat.yaml:9: timeouts.tsl: unknown key; did you mean "tls"?' in ended.stderr


def test_check_opens_every_file(check, tmp_path):
    ended = check(cert=tmp_path / "nothing.pem")
    assert ended.returncode == 2
    assert "leat.yaml:3: listeners[0].cert: certificate file" in ended.stderr
    assert "nothing.pem: No such file" in ended.stderr


def test_check_compares_certificate_and_key(check, certs):
    ended = check(key=certs.rsa_key)
    assert ended.returncode == 2
    assert "leat.yaml:3: listeners[0].cert: the key in" in ended.stderr
    assert "does not belong to the certificate" in ended.stderr


def test_check_looks_at_dates(check, certs):
    ended = check(cert=certs.expired_cert)
    assert ended.returncode == 2
    assert "has expired on" in ended.stderr and "expired" in ended.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    ended = leats.run("-c", tmp_path / "none.yaml")
    assert ended.returncode == 2
    assert "none.yaml" in ended.stderr and "No such file" in ended.stderr


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(check, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    ended = check(key=tmp_path / "pipe")
    assert ended.returncode == 2
    assert "leat.yaml:4: listeners[0].key: key file" in ended.stderr and "pipe" in ended.stderr


def test_check_wants_a_file():
    ended = leats.run("check")
    assert ended.returncode == 2 and "leat check -c leat.yaml" in ended.stderr
