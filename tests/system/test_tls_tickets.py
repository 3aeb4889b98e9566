# SPDX-License-Identifier: Apache-2.0
"""Resumption: across workers and reloads, and never past what a certificate's name asks for."""
import shutil
import ssl

import pytest

import amqp_wire
import control

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
OPEN, OTHER, PARTNERS = "open.example", "other.example", "partners.example"


@pytest.fixture(params=[TLS12, TLS13], ids=["1.2", "1.3"])
def version(request):
    return request.param


@pytest.fixture
def files(world, tmp_path):
    """A certificate and key in use, which a test may exchange."""
    put(world.server, tmp_path)
    return tmp_path


def put(pair, directory):
    shutil.copy(pair.cert, directory / "cert.pem")
    shutil.copy(pair.key, directory / "key.pem")


def configuration(world, broker, listener="", workers=1):
    """Three names, of which one is for who shows a certificate."""
    pair = "cert: cert.pem, key: key.pem"
    return (f"workers: {workers}\n"
            f"listeners: [{{ address: 'amqps://127.0.0.1:0', {pair}, "
            f"certificates: [open, other, partners]{listener} }}]\n"
            f"certificates:\n  open: {{ {pair}, names: [{OPEN}] }}\n"
            f"  other: {{ cert: {world.other_server.cert}, key: {world.other_server.key}, "
            f"names: [{OTHER}] }}\n"
            f"  partners: {{ {pair}, names: [{PARTNERS}], client_ca: {world.clients.cert} }}\n"
            f"backends: {{ broker: {{ address: 'amqp://127.0.0.1:{broker.port}' }} }}\n")


def visit(leat, context, name, resumed=None):
    """Opens a session and ends it. Returns whether TLS was resumed, and what can be next time."""
    client = amqp_wire.Client(leat.port, context, server_name=name, resumed=resumed).connect()
    outcome = client.sock.session_reused, client.sock.session
    client.close_politely()
    return outcome


def counters(leat):
    return control.answer(leat.socket, "status")["counters"]


def test_a_ticket_resumes_under_its_name(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    reused, ticket = visit(leat, context, OPEN)
    assert not reused and ticket.has_ticket
    client = amqp_wire.Client(leat.port, context, server_name=OPEN, resumed=ticket).connect()
    assert client.sock.session_reused
    session, = control.sessions(leat.socket)
    assert session["tls"]["resumed"] is True
    client.close_politely()
    assert counters(leat)["tls_handshakes"] == 2 and counters(leat)["tls_resumed"] == 1


def test_a_ticket_of_another_name_is_worth_nothing(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    client = amqp_wire.Client(leat.port, context, server_name=OTHER, resumed=ticket)
    assert not client.sock.session_reused
    assert client.sock.getpeercert()["subject"] == ((("commonName", "other"),),)
    client.connect().close_politely()
    assert counters(leat)["tls_resumed"] == 0


def test_no_ticket_passes_over_a_name_s_client_certificates(run_asked, world, serving, files,
                                                            version):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    tickets = [visit(leat, context, name)[1] for name in (OPEN, OTHER, None)]
    for ticket in tickets:
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE"):
            amqp_wire.Client(leat.port, context, server_name=PARTNERS, resumed=ticket).greet()
    assert len(serving.sessions) == 3 and counters(leat)["tls_resumed"] == 0


def test_where_clients_show_certificates_there_are_no_tickets(run_asked, world, serving, files,
                                                              version):
    leat = run_asked(configuration(world, serving))
    context = world.context(world.alice, version)
    _, ticket = visit(leat, context, PARTNERS)
    assert ticket is None or not ticket.has_ticket
    reused, _ = visit(leat, context, PARTNERS, ticket)
    assert not reused and counters(leat)["tls_resumed"] == 0


def test_tickets_can_be_switched_off(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving, ", tickets: false"))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    assert ticket is None or not ticket.has_ticket
    assert visit(leat, context, OPEN, ticket)[0] is False


@pytest.mark.parametrize("of_listener, of_name", [("true", "false"), ("false", "true")])
def test_whether_there_are_tickets_follows_the_name(run_file, world, serving, files, version,
                                                    of_listener, of_name):
    text = configuration(world, serving, f", tickets: {of_listener}")
    leat = run_file(text.replace(f"names: [{OPEN}]", f"names: [{OPEN}], tickets: {of_name}"))
    context = world.context(version=version)
    for name, tickets in ((OPEN, of_name), (None, of_listener)):
        _, ticket = visit(leat, context, name)
        assert visit(leat, context, name, ticket)[0] is (tickets == "true"), name


def test_any_worker_takes_the_ticket_of_another(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving, workers=2))
    context = world.context(version=version)

    def workers():
        return [one["sessions"] for one in control.answer(leat.socket, "status")["workers"]]

    _, ticket = visit(leat, context, OPEN)
    clients = []
    while not clients or (0 in workers() and len(clients) < 100):
        clients.append(amqp_wire.Client(leat.port, context, server_name=OPEN,
                                        resumed=ticket).connect())
        assert clients[-1].sock.session_reused, f"client {len(clients)} did not resume"
        ticket = clients[-1].sock.session
    assert 0 not in workers()
    assert all(session["tls"]["resumed"] for session in control.sessions(leat.socket))
    assert counters(leat)["tls_resumed"] == len(clients)
    for client in clients:
        client.close_politely()


def test_a_reload_that_changes_nothing_keeps_tickets(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving, workers=2))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    for _ in range(3):
        control.done(leat.socket, "reload")
        reused, ticket = visit(leat, context, OPEN, ticket)
        assert reused


def test_a_change_of_certificate_ends_its_tickets(run_asked, world, serving, files, version):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    _, others = visit(leat, context, OTHER)
    put(world.other_server, files)
    control.done(leat.socket, "reload")
    assert visit(leat, context, OPEN, ticket)[0] is False
    assert visit(leat, context, OTHER, others)[0] is True  # whose certificate stays


@pytest.mark.parametrize("policy", ["groups: P-256", "ciphersuites: TLS_AES_128_GCM_SHA256",
                                    "ciphers: ECDHE-ECDSA-AES128-GCM-SHA256"])
def test_a_change_of_policy_ends_tickets(run_asked, world, serving, files, version, policy):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    own = leat.file.read_text()
    leat.file.write_text(own.replace(f"names: [{OPEN}]", f"names: [{OPEN}], {policy}"))
    control.done(leat.socket, "reload")
    assert visit(leat, context, OPEN, ticket)[0] is False


def test_a_ticket_from_before_client_certificates_were_required(run_asked, world, serving, files,
                                                                version):
    leat = run_asked(configuration(world, serving))
    context = world.context(version=version)
    _, ticket = visit(leat, context, OPEN)
    own = leat.file.read_text()
    leat.file.write_text(own.replace(f"names: [{OPEN}]",
                                     f"names: [{OPEN}], client_ca: {world.clients.cert}"))
    control.done(leat.socket, "reload")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE"):
        amqp_wire.Client(leat.port, context, server_name=OPEN, resumed=ticket).greet()
