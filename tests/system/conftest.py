# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: one pair of RabbitMQ nodes for the whole run, certificates, and
leats and scripted brokers that are ended and checked after each test."""
import functools
import pathlib
import resource
import signal
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# The path above has to be set before.
import amqp_wire  # noqa: E402
import authority  # noqa: E402
import certs as certificates  # noqa: E402
import dns as names  # noqa: E402
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
def world(tmp_path_factory):
    """Certificates of servers and clients, good and bad."""
    return authority.World(tmp_path_factory.mktemp("world"))


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


def url_of(backend):
    """BACKEND is a URL, a port, or what has a port that speaks plain AMQP."""
    if isinstance(backend, str):
        return backend
    return f"amqp://127.0.0.1:{getattr(backend, 'port', backend)}"


@pytest.fixture
def run_leat(certs):
    """Starts leats before BACKENDS, with leat.Leat's options; ends and checks them after the
    test."""
    running = []

    def run(*backends, listen="amqps://127.0.0.1:0", **options):
        running.append(leats.Leat(listen, [url_of(one) for one in backends], certs, **options))
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def run_file(tmp_path):
    """Starts leats with a configuration file of TEXT, which is left at the leat's `file`."""
    running = []

    def run(text, **options):
        file = tmp_path / f"leat{len(running)}.yaml"
        file.write_text(text)
        running.append(leats.Leat(file=file, **options))
        running[-1].file = file
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def run_asked(run_file, tmp_path):
    """Starts leats as run_file does, with a control socket, whose path is the leat's `socket`."""
    def run(text, **options):
        path = tmp_path / f"{len(list(tmp_path.glob('*.yaml')))}.sock"
        leat = run_file(f"control: {{ socket: {path.name} }}\n" + text, **options)
        leat.socket = path
        return leat

    return run


@pytest.fixture
def serving(run_broker):
    """A scripted broker that opens sessions."""
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def run_broker():
    """Starts scripted brokers; ends and checks them after the test."""
    running = []

    def run(script, context=None, **options):
        running.append(amqp_wire.Broker(script, context, **options))
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def run_dns():
    """Starts DNS servers with dns.Dns's options."""
    running = []

    def run(**options):
        running.append(names.Dns(**options))
        return running[-1]

    yield run
    for one in running:
        one.stop()


@pytest.fixture
def dead_port():
    """A port that refuses connections, and that nobody else is given meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def leat(run_leat, rabbit):
    """leat with TLS before RabbitMQ."""
    return run_leat(rabbit)


@pytest.fixture
def plain_leat(run_leat):
    """Starts leats as run_leat does, without TLS."""
    return functools.partial(run_leat, listen="amqp://127.0.0.1:0")


@pytest.fixture(params=["plain", "tls"])
def leat_of_both_kinds(request, run_leat, tls):
    """Starts a leat, with TLS and without, before BACKENDS; returns it and a function that
    connects a client to it."""
    context = tls if request.param == "tls" else None

    def run(*backends, **options):
        leat = run_leat(*backends, listen=f"amqp{'s' if context else ''}://127.0.0.1:0",
                        **options)
        return leat, lambda: amqp_wire.Client(leat.port, context)

    return run
