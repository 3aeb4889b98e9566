# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: one pair of RabbitMQ nodes for the whole run, certificates, and
leats and scripted brokers that are ended and checked after each test."""
import pathlib
import resource
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# The path above has to be set before.
import amqp_wire  # noqa: E402
import certs as certificates  # noqa: E402
import leat as leats  # noqa: E402
import rabbitmq  # noqa: E402

TEST_SECONDS = 120


def pytest_configure():
    """A thousand sessions need thousands of descriptors; and SIGTERM ends the run as Ctrl-C does,
    so that what the tests have started is ended too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Ends a test that hangs: an exception in it, so that all it started is still ended."""
    def give_up(_signal, _frame):
        raise TimeoutError(f"{item.name} took longer than {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    return certificates.Certs(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="session")
def tls(certs):
    """The context of a client that verifies."""
    return certs.client_context()


@pytest.fixture(scope="session")
def rabbit(certs):
    """RabbitMQ, offering a heartbeat of 60 s, with a TLS port too."""
    node = rabbitmq.RabbitMQ(heartbeat=60, certs=certs)
    yield node
    node.stop()


@pytest.fixture(scope="session")
def quiet_rabbit():
    """RabbitMQ that offers no heartbeat; started only if a test asks for it."""
    node = rabbitmq.RabbitMQ(heartbeat=0)
    yield node
    node.stop()


@pytest.fixture
def run_leat(certs):
    """Starts leats with leat.Leat's arguments; ends and checks them after the test."""
    running = []

    def run(listen="amqps://127.0.0.1:0", **options):
        running.append(leats.Leat(listen, certs=certs, **options))
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def run_broker():
    """Starts scripted brokers; ends and checks them after the test."""
    running = []

    def run(script, context=None):
        running.append(amqp_wire.Broker(script, context))
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def leat(run_leat, rabbit):
    """leat with TLS before RabbitMQ."""
    return run_leat(backend=f"amqp://127.0.0.1:{rabbit.port}")


@pytest.fixture
def plain_leat(run_leat):
    """Starts leats without TLS before BROKERS, which are what has a port, ports, or URLs."""
    def url(broker):
        if isinstance(broker, str):
            return broker
        return f"amqp://127.0.0.1:{getattr(broker, 'port', broker)}"

    def run(*brokers, more=()):
        return run_leat(listen="amqp://127.0.0.1:0", backend=[url(one) for one in brokers],
                        more=more)

    return run


@pytest.fixture(params=["plain", "tls"])
def leat_of_both_kinds(request, run_leat, tls):
    """Starts a leat, with TLS and without, before BROKERS; returns it and a function that
    connects a client to it."""
    context = tls if request.param == "tls" else None

    def run(*brokers, more=()):
        leat = run_leat(listen=f"amqp{'s' if context else ''}://127.0.0.1:0", more=more,
                        backend=[f"amqp://127.0.0.1:{broker.port}" for broker in brokers])
        return leat, lambda: amqp_wire.Client(leat.port, context)

    return run
