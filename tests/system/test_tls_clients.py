# SPDX-License-Identifier: Apache-2.0
"""Certificates that clients show, and those that leat shows to brokers."""
import ssl

import pytest

import amqp_wire
import control
from authority import LONG_AGO_CRL, subject
from leat import NO_BROKER

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
REQUIRED = {ssl.TLSVersion.TLSv1_2: "SSLV3_ALERT_HANDSHAKE_FAILURE",  # 1.2 has no better one
            ssl.TLSVersion.TLSv1_3: "TLSV13_ALERT_CERTIFICATE_REQUIRED"}

# Whose certificate a client shows, the alert that it gets, and why, as the log has it.
BAD = [("stranger", "TLSV1_ALERT_UNKNOWN_CA",
        '"CN=stranger\\" was not accepted: its authority \\"CN=strangers\\" is unknown'),
       ("stale", "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        '"CN=stale\\" was not accepted: it expired on 2020-02-01'),
       ("banned", "SSLV3_ALERT_CERTIFICATE_REVOKED",
        '"CN=banned\\" was not accepted: it was revoked')]


def listener(world, more):
    return (f"listeners:\n  - {{ address: amqps://127.0.0.1:0, cert: {world.server.cert}, "
            f"key: {world.server.key}{more} }}\n")


def before(port, more=""):
    """A backend at PORT, with TLS if there is MORE to say about it."""
    scheme = "amqps" if more else "amqp"
    return f"backends: {{ broker: {{ address: '{scheme}://127.0.0.1:{port}'{more} }} }}\n"


@pytest.fixture
def strict(run_asked, world, serving):
    """A leat whose clients have to show a certificate that is not revoked."""
    return run_asked(listener(world, f", client_ca: {world.clients.cert}, "
                                     f"crl: {world.clients_crl}") + before(serving.port))


def alert_for(leat, context):
    with pytest.raises(ssl.SSLError) as failed:
        amqp_wire.Client(leat.port, context).greet()
    return failed.value.reason


@pytest.mark.parametrize("version", VERSIONS)
def test_a_good_certificate_names_the_session(strict, world, version):
    client = amqp_wire.Client(strict.port, world.context(world.alice, version)).connect()
    assert strict.wait("opened").fields["certificate"] == "CN=alice"
    session, = control.sessions(strict.socket)
    assert session["tls"]["peer_certificate"] == "CN=alice"
    shown = control.done(strict.socket, "session", session["id"], "show")
    assert "peer_certificate CN=alice" in shown
    client.close_politely()
    assert strict.wait("closed").fields["certificate"] == "CN=alice"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("who, alert, why", BAD)
def test_a_bad_certificate_is_refused_and_both_sides_know_why(strict, world, version, who, alert,
                                                              why):
    context = world.context(getattr(world, who), version)
    assert alert_for(strict, context) == alert
    assert why in strict.wait("failed", by="client").text
    assert control.answer(strict.socket, "status")["counters"]["failed"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_certificate_is_asked_for(strict, world, version):
    assert alert_for(strict, world.context(version=version)) == REQUIRED[version]
    reason = strict.wait("failed", by="client").fields["reason"]
    assert "the client gave no certificate, which is required here" in reason


def test_a_list_that_is_out_of_date_is_warned_of(run_file, world, serving):
    crl = world.clients.crl("out_of_date", LONG_AGO_CRL)
    leat = run_file(listener(world, f", client_ca: {world.clients.cert}, crl: {crl}")
                    + before(serving.port))
    assert "a revocation list of listeners[0] is out of date" in leat.wait("revocation").text
    alert_for(leat, world.context(world.alice))
    reason = leat.wait("failed", by="client").fields["reason"].replace('\\"', '"')
    assert 'the revocation list of "CN=clients" is out of date' in reason


def test_optional_means_none_or_a_good_one(run_file, world, serving):
    leat = run_file(listener(world, f", client_ca: {world.clients.cert}, "
                                    "client_certificate: optional") + before(serving.port))
    for pair in (None, world.alice):
        amqp_wire.Client(leat.port, world.context(pair)).connect().close_politely()
    assert "certificate" not in leat.wait("opened").fields
    assert leat.wait("opened", number=1).fields["certificate"] == "CN=alice"
    assert alert_for(leat, world.context(world.stranger)) == "TLSV1_ALERT_UNKNOWN_CA"


def test_none_asks_for_none(run_file, world, serving):
    leat = run_file(listener(world, f", client_ca: {world.clients.cert}, "
                                    "client_certificate: none") + before(serving.port))
    amqp_wire.Client(leat.port, world.context(world.stranger)).connect().close_politely()
    assert "certificate" not in leat.wait("opened").fields


def backend(world, broker, pair=None):
    shown = f", cert: {pair.cert}, key: {pair.key}" if pair else ""
    return before(broker.port, f", ca: {world.servers.cert}, name: localhost{shown}")


@pytest.mark.parametrize("version", VERSIONS)
def test_leat_shows_its_certificate_to_a_broker_that_wants_one(run_asked, run_broker, world,
                                                               version):
    context = world.broker_context(client_ca=world.clients.cert)
    context.minimum_version = context.maximum_version = version
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT), context)
    leat = run_asked(listener(world, "") + backend(world, broker, world.alice))
    client = amqp_wire.Client(leat.port, world.context()).connect()
    assert subject(broker.sessions[0].sock) == "alice"
    session, = control.sessions(leat.socket)
    assert session["backend_tls"]["peer_certificate"] == "CN=default"
    assert session["backend_tls"]["server_name"] == "localhost"
    client.close_politely()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("who, words", [
    (None, "wants a client certificate"), ("stranger", "alert unknown ca"),
    ("stale", "alert certificate expired")])
def test_a_broker_that_refuses_leat_is_understood(run_file, run_broker, world, version, who,
                                                  words):
    context = world.broker_context(client_ca=world.clients.cert)
    context.minimum_version = context.maximum_version = version
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT), context)
    leat = run_file(listener(world, "")
                    + backend(world, broker, getattr(world, who) if who else None))
    assert amqp_wire.Client(leat.port, world.context()).answer_to_open() == NO_BROKER
    assert words in leat.wait("refused").fields["last_failure"]


