# SPDX-License-Identifier: Apache-2.0
"""One listener, many names: the name that a client asks for decides the certificate and, with it,
versions, ciphers, groups and whether the client shows a certificate."""
import ssl
import subprocess

import pytest

import amqp_wire
import control
import leat as leats
from authority import subject

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture(scope="module")
def pairs(world):
    """A certificate for each name below, of that name with ".example"; of "star" those below."""
    names = {"orders": "orders.example", "wild": "wild.example", "audit": "audit.example",
             "star": "*.star.example"}
    return {name: world.servers.issue(name, [host]) for name, host in names.items()}


def listener(world, pairs, more):
    """A listener with PAIRS as further certificates, of which MORE has what they say besides."""
    lines = "".join(f"  {name}: {{ cert: {pair.cert}, key: {pair.key}{more.get(name, '')} }}\n"
                    for name, pair in pairs.items())
    return (f"listeners:\n  - address: amqps://127.0.0.1:0\n    cert: {world.server.cert}\n"
            f"    key: {world.server.key}\n    certificates: [{', '.join(pairs)}]\n"
            f"certificates:\n{lines}")


def before(broker):
    return f"backends: {{ broker: {{ address: 'amqp://127.0.0.1:{broker.port}' }} }}\n"


def shown(leat, context, name):
    """Whom the certificate names that a client is shown who asks for NAME."""
    client = amqp_wire.Client(leat.port, context, server_name=name)
    try:
        return subject(client.sock)
    finally:
        client.close()


def refused(leat, context, name):
    """The alert that a client gets who asks for NAME."""
    with pytest.raises(ssl.SSLError) as failed:
        amqp_wire.Client(leat.port, context, server_name=name).greet()
    return failed.value.reason


def test_the_name_decides_the_certificate(run_file, world, pairs, serving):
    leat = run_file(listener(world, pairs, {
        "wild": ", names: ['*.wild.example']",
        "audit": ", names: [Audit.Example, exact.wild.example]"}) + before(serving))
    context = world.context()
    wanted = {
        "orders.example": "orders", "ORDERS.Example": "orders", "audit.example": "audit",
        "a.wild.example": "wild", "A.WILD.EXAMPLE": "wild", "exact.wild.example": "audit",
        "a.star.example": "star", "star.example": "default", "a.b.star.example": "default",
        "a.b.wild.example": "default", "wild.example": "default", "orders": "default",
        "unknown.example": "default", "localhost": "default", None: "default"}
    assert {name: shown(leat, context, name) for name in wanted} == wanted


def test_a_session_tells_the_name_it_asked_for(run_asked, world, pairs, serving):
    leat = run_asked(listener(world, pairs, {}) + before(serving))
    client = amqp_wire.Client(leat.port, world.context(), server_name="orders.example").connect()
    session, = control.sessions(leat.socket)
    assert session["tls"]["server_name"] == "orders.example"
    assert session["tls"]["resumed"] is False
    shown_text = control.done(leat.socket, "session", session["id"], "show")
    assert "server_name orders.example" in shown_text
    client.close_politely()


def test_versions_follow_the_name(run_file, world, pairs, serving):
    leat = run_file(listener(world, pairs, {"orders": ", max_version: TLSv1.2",
                                            "audit": ", min_version: TLSv1.3"})
                    + before(serving))

    def version(context, name):
        client = amqp_wire.Client(leat.port, context, server_name=name).connect()
        spoken = client.sock.version()
        client.close_politely()
        return spoken

    either, old, new = (world.context(version=one) for one in (None, TLS12, TLS13))
    assert version(either, "orders.example") == version(old, "orders.example") == "TLSv1.2"
    assert version(either, "audit.example") == version(new, "audit.example") == "TLSv1.3"
    assert version(old, "wild.example") == "TLSv1.2" and version(new, None) == "TLSv1.3"
    assert refused(leat, new, "orders.example") == "TLSV1_ALERT_PROTOCOL_VERSION"
    assert refused(leat, old, "audit.example") == "TLSV1_ALERT_PROTOCOL_VERSION"
    leat.wait("failed", number=1)


def test_ciphers_follow_the_name(run_file, world, pairs, serving):
    leat = run_file(listener(world, pairs, {
        "orders": ", ciphersuites: TLS_CHACHA20_POLY1305_SHA256",
        "audit": ", ciphers: ECDHE-ECDSA-AES256-GCM-SHA384"}) + before(serving))
    cases = [("orders.example", TLS13, "TLS_CHACHA20_POLY1305_SHA256"),
             ("audit.example", TLS13, "TLS_AES_128_GCM_SHA256"),
             ("audit.example", TLS12, "ECDHE-ECDSA-AES256-GCM-SHA384"),
             ("orders.example", TLS12, "ECDHE-ECDSA-AES128-GCM-SHA256")]
    for name, version, wanted in cases:
        client = amqp_wire.Client(leat.port, world.context(version=version), server_name=name)
        assert client.sock.cipher()[0] == wanted, (name, version)
        client.connect().close_politely()
        assert leat.wait("opened", cipher=wanted)


def test_groups_follow_the_name(run_file, world, pairs, serving):
    leat = run_file(listener(world, pairs, {"orders": ", groups: P-384"}) + before(serving))

    def group(name, offered):
        """Of a client whose key shares are for the first of OFFERED."""
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{leat.port}", "-servername", name,
             "-groups", offered, "-CAfile", world.servers.cert], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=amqp_wire.SECONDS, check=False)
        found = [line for line in done.stdout.splitlines() if "Temp Key" in line]
        return found[0].split(": ")[1] if found else "none"

    assert group("orders.example", "X25519:P-384").startswith("ECDH, secp384r1")  # asked again
    assert group("audit.example", "X25519:P-384").startswith("X25519")
    assert group("orders.example", "X25519") == "none"


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_client_certificates_follow_the_name(run_file, world, pairs, serving, version):
    leat = run_file(listener(world, pairs, {
        "orders": f", client_ca: {world.clients.cert}",
        "audit": f", client_ca: {world.clients.cert}, client_certificate: optional"})
        + before(serving))
    bare, alice = world.context(version=version), world.context(world.alice, version)

    alert = "TLSV13_ALERT_CERTIFICATE_REQUIRED" if version == TLS13 else \
        "SSLV3_ALERT_HANDSHAKE_FAILURE"
    assert refused(leat, bare, "orders.example") == alert
    got = []
    for number, (context, name) in enumerate([
            (bare, None), (bare, "audit.example"), (bare, "wild.example"),
            (alice, "orders.example"), (alice, "audit.example"), (alice, "wild.example")]):
        amqp_wire.Client(leat.port, context, server_name=name).connect().close_politely()
        got.append(leat.wait("opened", number=number).fields.get("certificate"))
    assert got == [None, None, None, "CN=alice", "CN=alice", None]


def test_a_name_in_two_certificates_is_refused(tmp_path, world, pairs):
    file = tmp_path / "leat.yaml"
    file.write_text(listener(world, pairs, {"orders": ", names: [same.example]",
                                            "audit": ", names: [Same.Example.]"})
                    + "backends: { broker: { address: 'amqp://127.0.0.1' } }\n")
    done = leats.run("check", "-c", file)
    assert done.returncode == 2 and '"Same.Example." is the name of two' in done.stderr, done
