# SPDX-License-Identifier: Apache-2.0
"""AMQP 0-9-1 by hand: a leg that sends and receives single frames, a client that does the
handshake step by step, and a broker on loopback that follows a script.

For what a well-behaved client library can't be made to do.
"""
import collections
import contextlib
import socket
import struct
import threading

SECONDS = 20  # every wait for a peer ends by then
HEADER = b"AMQP\0\0\x09\x01"
FRAME_END = 0xCE
METHOD, CONTENT_HEADER, BODY, HEARTBEAT = 1, 2, 3, 8

NAMES = {
    (10, 10): "connection.start", (10, 11): "connection.start-ok",
    (10, 20): "connection.secure", (10, 21): "connection.secure-ok",
    (10, 30): "connection.tune", (10, 31): "connection.tune-ok",
    (10, 40): "connection.open", (10, 41): "connection.open-ok",
    (10, 50): "connection.close", (10, 51): "connection.close-ok",
    (10, 60): "connection.blocked", (10, 61): "connection.unblocked",
    (20, 10): "channel.open", (20, 11): "channel.open-ok",
    (20, 40): "channel.close", (20, 41): "channel.close-ok",
    (50, 10): "queue.declare", (50, 11): "queue.declare-ok",
    (60, 40): "basic.publish", (60, 70): "basic.get", (60, 71): "basic.get-ok",
}
NUMBERS = {name: number for number, name in NAMES.items()}

Tune = collections.namedtuple("Tune", "channel_max frame_max heartbeat")
DEFAULT_TUNE = Tune(2047, 131072, 60)
NO_HEARTBEAT = DEFAULT_TUNE._replace(heartbeat=0)


class Frame(collections.namedtuple("Frame", "type channel payload")):
    @property
    def name(self):
        if self.type == HEARTBEAT:
            return "heartbeat"
        if self.type != METHOD:
            return f"frame type {self.type}"
        number = struct.unpack_from(">HH", self.payload)
        return NAMES.get(number, "%d.%d" % number)

    @property
    def args(self):
        return self.payload[4:]


def frame(kind, channel, payload=b""):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([FRAME_END])


def method(channel, name, args=b""):
    return frame(METHOD, channel, struct.pack(">HH", *NUMBERS[name]) + args)


def shortstr(value):
    value = value.encode() if isinstance(value, str) else value
    return bytes([len(value)]) + value


def longstr(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(value)) + value


def fields(values):
    """The fields of a table of strings, booleans, integers and tables."""
    def field(value):
        if isinstance(value, bool):
            return b"t" + bytes([value])
        if isinstance(value, int):
            return b"I" + struct.pack(">i", value)
        if isinstance(value, dict):
            return b"F" + table(value)
        return b"S" + longstr(value)

    return b"".join(shortstr(name) + field(value) for name, value in values.items())


def table(values):
    return longstr(fields(values))


class Cursor:
    """Reads arguments; a text comes back as str."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data), "arguments end early"
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, layout):
        return struct.unpack(">" + layout, self.take(struct.calcsize(layout)))[0]

    def shortstr(self):
        return self.take(self.number("B")).decode()

    def longstr(self):
        return self.take(self.number("I"))

    def table(self):
        inner, values = Cursor(self.longstr()), {}
        readers = {b"S": lambda: inner.longstr().decode(), b"t": lambda: bool(inner.number("B")),
                   b"I": lambda: inner.number("i"), b"l": lambda: inner.number("q"),
                   b"F": inner.table, b"V": lambda: None}
        while inner.at < len(inner.data):
            name = inner.shortstr()
            values[name] = readers[inner.take(1)]()
        return values


def close_frame(code, text):
    return method(0, "connection.close",
                  struct.pack(">H", code) + shortstr(text) + struct.pack(">HH", 0, 0))


CLOSE_OK = method(0, "connection.close-ok")


def start_ok_args(properties=b"", mechanism="PLAIN", response="\0guest\0guest", locale="en_US"):
    """Arguments of Start-Ok; PROPERTIES are a table's encoded fields."""
    return longstr(properties) + shortstr(mechanism) + longstr(response) + shortstr(locale)


def open_frame(vhost="/"):
    return method(0, "connection.open", shortstr(vhost) + shortstr("") + b"\0")


def read_close(frame_):
    """The code and the text of a connection.close."""
    assert frame_.name == "connection.close", f"a close was expected, {frame_.name} came"
    cursor = Cursor(frame_.args)
    return cursor.number("H"), cursor.shortstr()


class Leg:
    """One end of a connection. Every wait ends after SECONDS with an exception."""

    def __init__(self, sock):
        sock.settimeout(SECONDS)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.frames_in = collections.Counter()

    def send(self, data):
        self.sock.sendall(data)

    def send_what_fits(self, data):
        """Sends until nobody takes more for a second; returns what was sent."""
        self.sock.settimeout(1)
        count = 0
        with contextlib.suppress(TimeoutError):
            while count < len(data):
                count += self.sock.send(data[count:count + 65536])
        self.sock.settimeout(SECONDS)
        return data[:count]

    def send_method(self, name, args=b"", channel=0):
        self.send(method(channel, name, args))

    def recv_exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.sock.recv(count - len(data))
            if not more:
                raise EOFError(f"the peer ended the connection after {len(data)} of {count} bytes")
            data += more
        return data

    def recv_to_end(self):
        """Everything until the peer's end; a reset counts as one."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while more := self.sock.recv(65536):
                data += more
        return data

    def recv_to_fin(self):
        """Everything until the peer's end; a reset is an error."""
        data = b""
        while more := self.sock.recv(65536):
            data += more
        return data

    def recv_frame(self):
        kind, channel, size = struct.unpack(">BHI", self.recv_exactly(7))
        payload = self.recv_exactly(size + 1)
        assert payload[-1] == FRAME_END, f"a frame ends with {payload[-1]:#x}"
        received = Frame(kind, channel, payload[:-1])
        self.frames_in[received.name] += 1
        return received

    def expect(self, name):
        """The next frame that is no heartbeat; it must be NAME."""
        while (received := self.recv_frame()).type == HEARTBEAT and name != "heartbeat":
            pass
        assert received.name == name, f"{name} was expected, {received.name} {received.args} came"
        return received

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def reset(self):
        """Closes so that the peer sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


OPEN_OK = method(0, "connection.open-ok", shortstr(""))
CAPABILITIES = {"authentication_failure_close": True, "connection.blocked": True,
                "basic.nack": True, "publisher_confirms": True}


class Client(Leg):
    """A client's leg to PORT on loopback, or to the UNIX socket whose path that is, with TLS if
    CONTEXT is given. Nothing is sent yet but FIRST, bytes that go ahead of TLS.

    It comes from SOURCE_PORT if that is not 0, and the kernel holds about RECEIVE_BUFFER bytes
    for it if that is not 0. SERVER_NAME is what TLS asks for, None for nothing, and RESUMED the
    ssl.SSLSession that it offers.
    """

    def __init__(self, port, context=None, source_port=0, receive_buffer=0, first=b"",
                 server_name="localhost", resumed=None):
        is_unix = not isinstance(port, int)
        sock = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
        sock.settimeout(SECONDS)
        try:
            if receive_buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if source_port:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(("127.0.0.1", source_port))
            sock.connect(str(port) if is_unix else ("127.0.0.1", port))
            sock.sendall(first)
            if context:
                sock = context.wrap_socket(sock, server_hostname=server_name, session=resumed)
        except BaseException:
            sock.close()
            raise
        super().__init__(sock)
        self.tune = None

    def greet(self):
        """Header; returns Start."""
        self.send(HEADER)
        return self.expect("connection.start")

    def start(self, user="guest", password="guest", properties=None):
        """Header, Start, Start-Ok."""
        self.greet()
        properties = {"product": "wire", "capabilities": CAPABILITIES, **(properties or {})}
        self.send_method("connection.start-ok", start_ok_args(
            fields(properties), response=f"\0{user}\0{password}"))

    def tune_ok(self, tune=None):
        """Takes Tune and answers TUNE, or what was offered."""
        offered = Tune(*struct.unpack(">HIH", self.expect("connection.tune").args))
        self.tune = tune or offered
        self.send_method("connection.tune-ok", struct.pack(">HIH", *self.tune))
        return offered

    def open(self, vhost="/"):
        """Open and Open-Ok."""
        self.send(open_frame(vhost))
        self.expect("connection.open-ok")
        return self

    def ask(self, tune=None, vhost="/", **login):
        """The handshake up to Open, whose answer is left to the caller."""
        self.start(**login)
        self.tune_ok(tune)
        self.send(open_frame(vhost))
        return self

    def connect(self, heartbeat=0, **login):
        """The whole handshake, to Open-Ok."""
        self.ask(DEFAULT_TUNE._replace(heartbeat=heartbeat), **login)
        self.expect("connection.open-ok")
        return self

    def answer_to_open(self, **login):
        """What a broker says to this login: (code, text) of its Close, or "opened". Closes."""
        self.ask(**login)
        answer = self.recv_frame()
        self.close()
        return "opened" if answer.name == "connection.open-ok" else read_close(answer)

    def take_close(self, before=b""):
        """Takes the Close, answers it with BEFORE and Close-Ok, and closes once the peer has ended
        the connection without another word. Returns the code and the text."""
        answer = read_close(self.expect("connection.close"))
        self.send(before + CLOSE_OK)
        assert self.recv_to_fin() == b"", "something comes after the Close"
        self.close()
        return answer

    def close_politely(self):
        self.send(close_frame(200, "bye"))
        self.expect("connection.close-ok")
        self.close()


class Session(Leg):
    """A broker's leg: what a script is given. `login` is (mechanism, response, properties),
    `start_ok` the same in bytes."""

    def __init__(self, sock, broker):
        super().__init__(sock)
        self.broker = broker
        self.login = self.tune = self.vhost = self.received = self.start_ok = None

    def start(self, mechanisms=b"PLAIN AMQPLAIN", capabilities=None):
        """Header, Start, Start-Ok."""
        header = self.recv_exactly(8)
        assert header == HEADER, f"the connection begins with {header}"
        properties = {"product": "scripted", "version": "1",
                      "capabilities": CAPABILITIES if capabilities is None else capabilities}
        self.send_method("connection.start",
                         b"\0\x09" + table(properties) + longstr(mechanisms) + longstr("en_US"))
        self.start_ok = self.expect("connection.start-ok").args
        cursor = Cursor(self.start_ok)
        properties = cursor.table()
        self.login = cursor.shortstr(), cursor.longstr(), properties

    def tune_and_open(self, tune=DEFAULT_TUNE):
        """Tune, Tune-Ok, Open; Open-Ok is left to the caller."""
        self.send_method("connection.tune", struct.pack(">HIH", *tune))
        self.tune = Tune(*struct.unpack(">HIH", self.expect("connection.tune-ok").args))
        self.vhost = Cursor(self.expect("connection.open").args).shortstr()

    def handshake(self, tune=DEFAULT_TUNE):
        self.start()
        self.tune_and_open(tune)
        self.send(OPEN_OK)


# Scripts. Each plays one broker's connection to its end.

def serving(tune=DEFAULT_TUNE, echo_heartbeats=False):
    """A broker that opens sessions and otherwise only listens."""
    def script(session):
        session.handshake(tune)
        while (received := session.recv_frame()).name != "connection.close":
            if received.type == HEARTBEAT and echo_heartbeats:
                session.send(frame(HEARTBEAT, 0))
        session.send(CLOSE_OK)
        session.recv_to_end()
    return script


def held(tune=NO_HEARTBEAT):
    """Opens the session and leaves it to the test."""
    def script(session):
        session.handshake(tune)
        session.sock.settimeout(SECONDS)
        session.broker.stopping.wait()
    return script


def silent(session):
    """Takes everything and says nothing."""
    session.recv_to_end()


def resetting(session):
    session.recv_exactly(8)
    session.reset()


def babbling(session):
    """Answers the header with noise."""
    session.recv_exactly(8)
    session.send(b"\xff" * 4096)
    session.recv_to_end()


def securing(session):
    """Asks for a second round of authentication."""
    session.start()
    session.send_method("connection.secure", longstr("more?"))
    session.recv_to_end()


def refusing(code, text, instead_of="open-ok"):
    """Says Close instead of Tune or of Open-Ok; `received` is what came then, only a Close-Ok."""
    def script(session):
        session.start()
        if instead_of == "open-ok":
            session.tune_and_open()
        session.send(close_frame(code, text))
        session.received = session.recv_to_end()
        assert session.received == CLOSE_OK, f"a refusal is answered with {session.received}"
    return script


def recording(tune=DEFAULT_TUNE, gate=None):
    """A broker that opens sessions and leaves sending to the test. Once a session is over
    `received` has all that came after Open-Ok; it is read only once the event GATE is set."""
    def script(session):
        session.handshake(tune)
        if gate:
            assert gate.wait(SECONDS), "the test did not open the gate"
        session.received = session.recv_to_end()
    return script


class Broker:
    """Listens on loopback and runs SCRIPT(session) in a thread for each connection. ADDRESS is a
    host and port other than 127.0.0.1 and any, or the path of a UNIX socket.

    `sessions` are all that came. A script that fails for another reason than its peer's end
    makes stop() fail.
    """

    def __init__(self, script, context=None, address=("127.0.0.1", 0)):
        self.script, self.context = script, context
        self.sessions, self.failures = [], []
        self.stopping = threading.Event()
        self._news = threading.Condition()
        self._threads = []
        if isinstance(address, tuple):
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self._listener = socket.create_server(address, family=family, backlog=1024)
            self.port = self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(address))
            self._listener.listen(1024)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                thread = threading.Thread(target=self._play, args=(sock,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _play(self, sock):
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            session = Session(sock, self)
            sock.settimeout(None)
            with self._news:
                self.sessions.append(session)
                self._news.notify_all()
            self.script(session)
        except (EOFError, OSError):
            pass
        except Exception as failure:  # told by stop()
            self.failures.append(failure)
        finally:
            sock.close()

    def wait_sessions(self, count):
        """Waits until COUNT connections came; returns the sessions."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.sessions) >= count, SECONDS)
        assert came, f"{len(self.sessions)} of {count} connections came to the broker"
        return self.sessions

    def wait_ended(self):
        """Waits until all connections that came are over."""
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "leat keeps its connection to the broker"

    def stop(self):
        self.stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(SECONDS)
        for session in self.sessions:
            session.close()
        for thread in self._threads:
            thread.join(SECONDS)
        assert not self.failures, f"the scripted broker failed: {self.failures}"
