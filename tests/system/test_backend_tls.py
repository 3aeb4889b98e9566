# SPDX-License-Identifier: Apache-2.0
"""TLS to the broker: verified, and never without."""
import re

import amqp_wire
import clients
from leat import NO_BROKER


def answer_to_open(leat, context):
    return amqp_wire.Client(leat.port, context).answer_to_open()


def test_a_verified_broker_is_used(run_leat, rabbit, certs, tls):
    leat = run_leat(f"amqps://127.0.0.1:{rabbit.tls_port}",
                    more=["--backend-ca", certs.ca])
    connection = clients.connect(leat.port, tls)
    body = bytes(range(256)) * 4000
    assert clients.round_trip(connection, body) == body
    connection.close()
    assert leat.wait("opened").fields["backend_tls"].startswith("TLSv1.")


def test_the_name_to_verify_can_be_given(run_leat, rabbit, certs, tls):
    leat = run_leat(f"amqps://127.0.0.1:{rabbit.tls_port}",
                    more=["--backend-ca", certs.ca, "--backend-name", "localhost"])
    connection = clients.connect(leat.port, tls)
    assert clients.round_trip(connection, b"x") == b"x"
    connection.close()


def test_an_unknown_authority_is_refused(run_leat, rabbit, certs, tls):
    leat = run_leat(f"amqps://127.0.0.1:{rabbit.tls_port}",
                    more=["--backend-ca", certs.other_ca])
    assert answer_to_open(leat, tls) == NO_BROKER
    leat.wait("failed:")
    assert re.search(r"issuer|authority|self.signed", leat.text())
    assert not leat.find("opened")


def test_another_name_is_refused(run_leat, rabbit, certs, tls):
    leat = run_leat(f"amqps://127.0.0.1:{rabbit.tls_port}",
                    more=["--backend-ca", certs.ca, "--backend-name", "elsewhere.example"])
    assert answer_to_open(leat, tls) == NO_BROKER
    leat.wait("failed:")
    assert "elsewhere.example" in leat.text() or re.search("host ?name", leat.text())
    assert not leat.find("opened")


def test_a_plain_broker_is_not_taken_for_a_tls_one(run_leat, rabbit, certs, tls):
    leat = run_leat(f"amqps://127.0.0.1:{rabbit.port}", more=["--backend-ca", certs.ca])
    assert answer_to_open(leat, tls) == NO_BROKER
