# SPDX-License-Identifier: Apache-2.0
"""How leat ends: asked once it lets sessions end, asked twice it goes at once; always with 0."""
import amqp_wire


def test_without_sessions_it_ends_at_once(run_leat):
    leat = run_leat(backend="amqp://127.0.0.1:5672")
    leat.process.terminate()
    assert leat.end() == 0


def test_a_session_may_end_by_itself(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"amqp://127.0.0.1:{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    leat.process.terminate()
    client.close_politely()
    assert leat.end() == 0
    assert leat.wait("closed").fields["by"] == "client"


def test_the_second_signal_ends_it_at_once(run_leat, run_broker, tls):
    broker = run_broker(amqp_wire.serving())
    leat = run_leat(backend=f"amqp://127.0.0.1:{broker.port}")
    client = amqp_wire.Client(leat.port, tls).connect()
    leat.stop()
    client.recv_to_end()
    client.close()
    leat.wait("closed")
