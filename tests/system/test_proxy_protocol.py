# SPDX-License-Identifier: Apache-2.0
"""PROXY headers: from a load balancer before leat, and to the brokers behind it."""
import contextlib
import ssl

import pytest

import amqp_wire
import control
import flow
import leat as leats
import proxy_header
import rabbitmq
from proxy_header import v1, v2

CLIENT = ("203.0.113.7", 40130)
CLIENT6 = ("2001:db8::7", 40130)
LOCAL_CLIENT = ("127.0.0.9", 40130)
LOCAL_ONLY = (403, "ACCESS_REFUSED - this user can only connect from the machine of the proxy")
TLVS = (proxy_header.tlv(proxy_header.AUTHORITY, b"amqp.example")
        + proxy_header.tlv(0xea, b"\x01vpce-1") + proxy_header.tlv(0x04, b"\0" * 700))


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def start(run_file, tmp_path, certs):
    """Starts leats with one listener, for the proxies of NETWORKS, before BACKEND, the contents of
    a map; the control socket is `socket`."""
    def run(backend, networks="127.0.0.0/8", scheme="amqp", more="", keys=""):
        if scheme == "amqps":
            keys += f", cert: {certs.cert}, key: {certs.key}"
        path = tmp_path / "leat.sock"
        leat = run_file(
            f"listeners: [{{ address: '{scheme}://127.0.0.1:0',"
            f" proxy_protocol: [{networks}]{keys} }}]\n"
            f"backends: {{ broker: {{ {backend} }} }}\n"
            f"control: {{ socket: '{path}' }}\n" + more)
        leat.socket = path
        return leat

    return run


def at(broker):
    return f"address: 'amqp://127.0.0.1:{broker.port}'"


@pytest.fixture
def leat(start, broker):
    return start(at(broker))


def text(address):
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


# From a load balancer.

@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
@pytest.mark.parametrize("header, client", [
    (v1(CLIENT), CLIENT),
    (v1(CLIENT6, ("2001:db8::1", 5671)), CLIENT6),
    (v2(CLIENT), CLIENT),
    (v2(CLIENT6, ("2001:db8::1", 5671)), CLIENT6),
    (v2(CLIENT, tlvs=TLVS), CLIENT),
], ids=["v1", "v1 of IPv6", "v2", "v2 of IPv6", "v2 with TLVs"])
def test_the_client_is_the_headers(start, broker, tls, scheme, header, client):
    leat = start(at(broker), scheme=scheme)
    peer = amqp_wire.Client(leat.port, tls if scheme == "amqps" else None,
                            first=header).connect(user="app")
    via = f"127.0.0.1:{peer.sock.getsockname()[1]}"
    opened = leat.wait("opened").fields
    assert (opened["peer"], opened["via"]) == (text(client), via)
    told, = control.sessions(leat.socket, "--client", text(client))
    assert (told["client"], told["via"]) == (text(client), via)
    peer.close_politely()
    assert leat.wait("closed").fields["peer"] == text(client)
    properties = broker.wait_sessions(1)[0].login[2]
    assert properties["leat_client"].split()[0] == text(client)


@pytest.mark.parametrize("header", [v1(CLIENT), v2(CLIENT, tlvs=TLVS)], ids=["v1", "v2"])
def test_a_header_in_single_bytes(leat, header):
    peer = amqp_wire.Client(leat.port)
    for byte in header + amqp_wire.HEADER:
        peer.send(bytes([byte]))
    peer.expect("connection.start")
    peer.close()
    assert leat.wait("failed", by="client").fields["peer"] == text(CLIENT)


@pytest.mark.parametrize("header", [v1(CLIENT), v2(CLIENT)], ids=["v1", "v2"])
def test_header_and_first_bytes_in_one_segment(leat, header):
    peer = amqp_wire.Client(leat.port, first=header + amqp_wire.HEADER)
    peer.expect("connection.start")
    peer.close()


def test_header_and_client_hello_in_one_segment(start, broker, tls):
    leat = start(at(broker), scheme="amqps")
    raw = amqp_wire.Client(leat.port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
    to_send = v2(CLIENT)
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            session.do_handshake()
            break
        raw.send(to_send + outgoing.read())
        to_send = b""
        incoming.write(raw.sock.recv(65536))
    session.write(amqp_wire.HEADER)
    raw.send(outgoing.read())
    assert raw.sock.recv(65536)
    raw.close()


@pytest.mark.parametrize("bytes_, words", [
    (amqp_wire.HEADER, "PROXY"),
    (b"GET / HTTP/1.1\r\n\r\n", "PROXY"),
    (b"PROXY TCP4 300.0.0.1 127.0.0.1 1 2\r\n", "PROXY"),
    (b"PROXY " + b"x" * 200, "PROXY"),
    (proxy_header.SIGNATURE + b"\x31\x11\0\0", "PROXY"),
], ids=["AMQP", "HTTP", "no address", "no end", "version 3"])
def test_what_is_no_header_is_refused(leat, bytes_, words):
    peer = amqp_wire.Client(leat.port, first=bytes_)
    assert peer.recv_to_end() == b""
    peer.close()
    assert words in leat.the_end("failed", "client").fields["reason"]


@pytest.mark.parametrize("networks", ["10.0.0.0/8", "127.0.0.2, '::1', 192.0.2.0/24"])
def test_only_the_configured_proxies_are_believed(start, broker, networks):
    leat = start(at(broker), networks)
    peer = amqp_wire.Client(leat.port)
    with contextlib.suppress(OSError):
        peer.send(v1(CLIENT) + amqp_wire.HEADER)
    assert peer.recv_to_end() == b""
    end = leat.the_end("failed", "leat")
    assert "none of the proxies that listeners[0].proxy_protocol names" in end.fields["reason"]
    assert end.fields["peer"].startswith("127.0.0.1:")
    peer.close()


def test_a_header_has_a_deadline(start, broker):
    leat = start(at(broker), more="timeouts: { proxy: 100ms }\n")
    peer = amqp_wire.Client(leat.port, first=v1(CLIENT)[:20])
    assert peer.recv_to_end() == b""
    leat.the_end("failed", "client", reason="no PROXY header in time (timeouts.proxy)")
    peer.close()


def test_the_state_proxy_is_shown(leat):
    peer = amqp_wire.Client(leat.port)
    flow.wait_status(leat, lambda now: now["handshakes"] == 1)
    told, = control.sessions(leat.socket, "--state", "proxy")
    assert (told["state"], told["via"]) == ("proxy", None)
    peer.close()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_R31_connect_and_close_before_a_proxy_header(leat, how):
    """Sockets of health checks that only connected piled up."""
    for _ in range(20):
        peer = amqp_wire.Client(leat.port)
        peer.close() if how == "end" else peer.reset()
    flow.wait_status(leat, lambda now: now["accepted"] == 20 and now["connections"] == 0)
    assert leat.status()["silent"] == 20 and not leat.find("failed")


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
@pytest.mark.parametrize("header", [proxy_header.UNKNOWN, proxy_header.HEALTH_CHECK],
                         ids=["UNKNOWN", "LOCAL"])
def test_R31_a_proxys_own_health_check(start, broker, header, scheme):
    leat = start(at(broker), scheme=scheme)
    for _ in range(5):
        amqp_wire.Client(leat.port, first=header).close()
    flow.wait_status(leat, lambda now: now["accepted"] == 5 and now["connections"] == 0)
    assert leat.status()["silent"] == 5 and not leat.find("failed")


# Who is local: guest is one of loopback_users.

@pytest.mark.parametrize("header, is_local", [
    (v1(LOCAL_CLIENT), True),
    (v2(LOCAL_CLIENT), True),
    (v1(CLIENT), False),
    (v2(CLIENT6, ("2001:db8::1", 5671)), False),
    (proxy_header.UNKNOWN, False),
    (proxy_header.HEALTH_CHECK, False),
], ids=["v1 of loopback", "v2 of loopback", "v1", "v2", "UNKNOWN", "LOCAL"])
def test_loopback_users(leat, header, is_local):
    answer = amqp_wire.Client(leat.port, first=header).answer_to_open(user="guest")
    assert answer == ("opened" if is_local else LOCAL_ONLY)


# To the broker.

def taking(take, headers):
    """A broker's script that begins with a PROXY header."""
    serving = amqp_wire.serving(amqp_wire.NO_HEARTBEAT)

    def script(session):
        headers.append(take(session))
        serving(session)
    return script


def test_v1_to_the_broker(run_file, run_broker):
    headers = []
    broker = run_broker(taking(proxy_header.take_v1, headers))
    leat = run_file("listeners: [{ address: 'amqp://127.0.0.1:0' }]\n"
                    f"backends: {{ a: {{ {at(broker)}, proxy_protocol: v1 }} }}\n")
    client = amqp_wire.Client(leat.port).connect()
    port = client.sock.getsockname()[1]
    client.close_politely()
    assert headers == [f"PROXY TCP4 127.0.0.1 127.0.0.1 {port} {leat.port}\r\n".encode()]


def test_v2_to_the_broker_with_what_tls_says(run_file, run_broker, certs, tls):
    headers = []
    broker = run_broker(taking(proxy_header.take_v2, headers))
    leat = run_file(f"listeners: [{{ address: 'amqps://127.0.0.1:0', cert: {certs.cert},"
                    f" key: {certs.key} }}]\n"
                    f"backends: {{ a: {{ {at(broker)}, proxy_protocol: v2 }} }}\n")
    client = amqp_wire.Client(leat.port, tls).connect()
    port, (cipher, version, _) = client.sock.getsockname()[1], client.sock.cipher()
    client.close_politely()
    header, = headers
    assert header.source == ("127.0.0.1", port) and header.destination == ("127.0.0.1", leat.port)
    assert header.authority == b"localhost"
    flags, verify, tlvs = header.ssl
    assert flags == 1 and verify == 1
    assert tlvs == {proxy_header.SSL_VERSION: version.encode(),
                    proxy_header.SSL_CIPHER: cipher.encode()}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_v2_to_the_broker_with_whom_the_clients_certificate_names(run_file, run_broker, world,
                                                                  version):
    headers = []
    broker = run_broker(taking(proxy_header.take_v2, headers))
    leat = run_file(f"listeners: [{{ address: 'amqps://127.0.0.1:0', cert: {world.server.cert},"
                    f" key: {world.server.key}, client_ca: {world.clients.cert} }}]\n"
                    f"backends: {{ a: {{ {at(broker)}, proxy_protocol: v2 }} }}\n")
    amqp_wire.Client(leat.port, world.context(world.alice, version)).connect().close_politely()
    flags, verify, tlvs = headers[0].ssl
    assert flags & 3 == 3 and verify == 0  # over TLS, and it has shown a certificate, which is good
    assert tlvs[proxy_header.SSL_CN] == b"alice"


@pytest.mark.parametrize("client", [CLIENT, CLIENT6])
def test_what_a_load_balancer_says_is_passed_on(start, run_broker, client):
    headers = []
    broker = run_broker(taking(proxy_header.take_v2, headers))
    leat = start(at(broker) + ", proxy_protocol: v2")
    destination = ("2001:db8::1", 5671) if ":" in client[0] else ("192.0.2.1", 5671)
    amqp_wire.Client(leat.port, first=v1(client, destination)).connect(user="a").close_politely()
    assert headers == [proxy_header.Header(client, destination, None, None)]


def test_a_client_that_a_proxy_cannot_name_has_addresses_all_the_same(start, run_broker):
    headers = []
    broker = run_broker(taking(proxy_header.take_v2, headers))
    leat = start(at(broker) + ", proxy_protocol: v2")
    client = amqp_wire.Client(leat.port, first=proxy_header.UNKNOWN).connect(user="app")
    port = client.sock.getsockname()[1]
    client.close_politely()
    assert headers == [proxy_header.Header(("127.0.0.1", port), ("127.0.0.1", leat.port), None,
                                           None)]


@pytest.fixture(scope="module")
def proxied_rabbit(certs):
    """RabbitMQ that wants a PROXY header on all its ports."""
    node = rabbitmq.RabbitMQ(certs=certs, expects_proxy=True)
    yield node
    node.stop()


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_R37_the_broker_sees_the_clients_address(start, proxied_rabbit, certs, version, scheme):
    """Behind a proxy all connections came from the proxy's address."""
    port = proxied_rabbit.tls_port if scheme == "amqps" else proxied_rabbit.port
    trust = f", ca: {certs.ca}, name: localhost" if scheme == "amqps" else ""
    leat = start(f"address: '{scheme}://127.0.0.1:{port}', proxy_protocol: {version}{trust}")
    client = amqp_wire.Client(leat.port, first=v2(CLIENT)).connect(
        user="app", password=rabbitmq.USERS["app"])
    assert f"{CLIENT[0]}\t{CLIENT[1]}" in proxied_rabbit.control(
        "-q", "list_connections", "peer_host", "peer_port")
    client.close_politely()


def test_without_a_header_such_a_broker_is_of_no_use(start, proxied_rabbit):
    leat = start(at(proxied_rabbit))
    assert amqp_wire.Client(leat.port, first=v2(CLIENT)).answer_to_open(
        user="app") == leats.NO_BROKER
    assert leat.wait("failed:")


# The configuration.

@pytest.mark.parametrize("line, sentence", [
    ("{ address: 'amqp://127.0.0.1:0', proxy_protocol: [10.0.0.1/8] }",
     "listeners[0].proxy_protocol: "),
    ("{ address: 'amqp://127.0.0.1:0', proxy_protocol: [lb.example] }",
     "listeners[0].proxy_protocol: "),
    ("{ address: 'amqp://127.0.0.1:0', proxy_protocol: [unix] }",
     "listeners[0].proxy_protocol: unix is only for a UNIX socket"),
    ("{ address: 'amqp+unix:///tmp/a', proxy_protocol: [10.0.0.0/8] }",
     "listeners[0].proxy_protocol: over a UNIX socket it can only be [unix]"),
    ("{ address: 'amqp://127.0.0.1:0', mode: 0660 }",
     "listeners[0].mode: only a UNIX socket has one"),
    ("{ address: 'amqp+unix:///tmp/a', mode: 0888 }",
     "listeners[0].mode: expected three octal digits"),
])
def test_check(tmp_path, line, sentence):
    file = tmp_path / "leat.yaml"
    file.write_text(f"backends: {{ a: {{ address: 'amqp://127.0.0.1' }} }}\nlisteners:\n - {line}\n")
    done = leats.run("check", "-c", file)
    assert done.returncode == 2 and f"{file}:3: {sentence}" in done.stderr, done
