# SPDX-License-Identifier: Apache-2.0
"""What is wrong on the command line is said in one sentence, and leat ends with 2."""
import re
import socket

import pytest

import leat as leats

LISTEN = ["--listen", "amqp://127.0.0.1:0"]
BACKEND = ["--backend", "amqp://127.0.0.1:5672"]


def refused(*args):
    """Runs leat, which must refuse ARGS; returns its sentence."""
    done = leats.run(*args)
    assert done.returncode == 2, f"exit status {done.returncode}: {done.stderr}"
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n"), done.stderr
    return done.stderr


@pytest.mark.parametrize("args, mention", [
    ([], "--listen"),
    (LISTEN, "--backend"),
    (BACKEND, "--listen"),
    ([*LISTEN, *BACKEND, "--nonsense"], "--nonsense"),
    ([*LISTEN, *BACKEND, "stray"], "stray"),
    ([*BACKEND, "--listen"], "--listen"),
    ([*BACKEND, "--listen", "http://127.0.0.1:0"], "http://127.0.0.1:0"),
    ([*BACKEND, "--listen", "127.0.0.1:5672"], "127.0.0.1:5672"),
    ([*BACKEND, "--listen", "amqp://127.0.0.1:65536"], "65536"),
    ([*BACKEND, "--listen", "amqp://127.0.0.1:x"], "127.0.0.1:x"),
    ([*BACKEND, "--listen", "amqp://"], "--listen"),
    ([*LISTEN, "--backend", "amqp://127.0.0.1:-1"], "-1"),
    ([*LISTEN, "--backend", "amqp://127.0.0.1:0"], "127.0.0.1:0"),
    ([*LISTEN, "--backend", "ftp://127.0.0.1"], "ftp://127.0.0.1"),
    ([*LISTEN, *BACKEND, "--workers", "0"], "workers"),
    ([*LISTEN, *BACKEND, "--workers", "many"], "many"),
    ([*LISTEN, *BACKEND, "--workers", "99999999999999999999"], "workers"),
    ([*LISTEN, *BACKEND, "--log-level", "loud"], "loud"),
    ([*BACKEND, "--listen", "amqps://127.0.0.1:0"], "--cert"),
])
def test_a_wrong_option_is_named(args, mention):
    assert mention in refused(*args)


def tls_listener(cert, key):
    return [*BACKEND, "--listen", "amqps://127.0.0.1:0", "--cert", cert, "--key", key]


def test_a_missing_file_is_named(certs):
    for args in (tls_listener("/nonexistent/cert.pem", certs.key),
                 tls_listener(certs.cert, "/nonexistent/key.pem"),
                 [*LISTEN, "--backend", "amqps://127.0.0.1:5671",
                  "--backend-ca", "/nonexistent/ca.pem"]):
        assert "/nonexistent/" in refused(*args)


def test_a_file_that_is_no_certificate_is_named(certs, tmp_path):
    other = tmp_path / "other.pem"
    other.write_text("this is no certificate\n")
    for args in (tls_listener(other, certs.key), tls_listener(certs.cert, other),
                 [*LISTEN, "--backend", "amqps://127.0.0.1:5671", "--backend-ca", other]):
        assert str(other) in refused(*args)


def test_a_directory_instead_of_a_file_is_named(certs, tmp_path):
    assert str(tmp_path) in refused(*tls_listener(tmp_path, certs.key))


def test_a_key_of_another_certificate_is_named(certs):
    assert str(certs.rsa_key) in refused(*tls_listener(certs.cert, certs.rsa_key))


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        sentence = refused(*BACKEND, "--listen", f"amqp://127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in sentence


def test_an_address_that_is_not_ours_is_named():
    assert "192.0.2.1:5672" in refused(*BACKEND, "--listen", "amqp://192.0.2.1:5672")


def test_version():
    done = leats.run("--version")
    assert done.returncode == 0 and done.stderr == ""
    assert re.match(r"leat \d+\.\d+\.\d+\b", done.stdout)


def test_help_lists_every_option():
    done = leats.run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for option in ("listen", "backend", "cert", "key", "backend-ca", "backend-name", "workers",
                   "log-level", "trace", "version", "help"):
        assert f"--{option}" in done.stdout


@pytest.mark.parametrize("level", ["error", "warn", "info", "debug", "trace"])
def test_every_log_level_is_known(run_leat, level):
    # "listening" is an info line: without it there is nothing to wait for but a refusal.
    if level in ("error", "warn"):
        sentence = refused(*LISTEN, "--log-level", level, "--backend", "nonsense")
        assert "nonsense" in sentence and level not in sentence
    else:
        run_leat("amqp://127.0.0.1:5672", listen="amqp://127.0.0.1:0", more=["--log-level", level])
