# SPDX-License-Identifier: Apache-2.0
"""A running leat asked and told by leatctl: every verb, as a person and as a program has it."""
import json
import re

import pika
import pytest

import amqp_wire
import clients
import control
import flow
import leat as leats

GONE = (320, "CONNECTION_FORCED - closed by the operator")
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SESSION_MEMBERS = {
    "id", "state", "client", "via", "listener", "user", "vhost", "farm", "backend", "backend_address",
    "seconds", "tls", "backend_tls", "heartbeat_s", "frame_max", "channel_max", "bytes_in",
    "bytes_out", "frames_in", "frames_out", "queued_to_client", "queued_to_broker", "waits"}


@pytest.fixture
def start(plain_leat, tmp_path):
    """Starts leats with a control socket, whose path is the leat's `socket`."""
    def run(*backends, more=(), **options):
        path = tmp_path / "leat.sock"
        leat = plain_leat(*backends, more=["--control-socket", path, *more], **options)
        leat.socket = path
        return leat

    return run


@pytest.fixture
def broker(run_broker):
    return run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))


@pytest.fixture
def leat(start, broker):
    """leat before a scripted broker."""
    return start(broker)


@pytest.fixture
def filed(run_file, tmp_path):
    """Starts leats with a file of TEXT and a control socket."""
    def run(text, **options):
        path = tmp_path / "leat.sock"
        leat = run_file(f"control: {{ socket: {path.name} }}\n" + text, **options)
        leat.socket = path
        return leat

    return run


def configuration(*brokers):
    backends = "".join(f"  b{number}: {{ address: 'amqp://127.0.0.1:{one.port}' }}\n"
                       for number, one in enumerate(brokers))
    return "listeners:\n  - address: amqp://127.0.0.1:0\nbackends:\n" + backends


def the_session(leat, *filters):
    listed = control.sessions(leat.socket, *filters)
    assert len(listed) == 1, listed
    return listed[0]


def test_status(leat):
    client = amqp_wire.Client(leat.port).connect()
    status = control.answer(leat.socket, "status")
    assert list(status)[0] == "ok" and status["ok"] is True
    assert status["pid"] == leat.process.pid and status["state"] == "running"
    assert TIME.fullmatch(status["started_at"]) and status["uptime_s"] >= 0
    configuration_ = status["configuration"]
    assert configuration_.pop("loaded_at") and configuration_ == {
        "file": None, "reloads": 0, "failed_reloads": 0, "last_failure": None}
    assert [status[name] for name in ("connections", "sessions", "handshakes", "log_level")] == [
        1, 1, 0, "info"]
    assert status["sessions_max"] > 1 and 0 < status["handshakes_max"] <= 4096
    assert sum(worker["sessions"] for worker in status["workers"]) == 1
    assert sum(worker["connects"] for worker in status["workers"]) == 1
    logged = leat.status()
    assert set(logged) <= set(status["counters"]) | set(status)
    assert status["counters"]["opened"] == logged["opened"] == 1
    shown = control.done(leat.socket, "status")
    assert re.search(r"^sessions +1 of at most \d+$", shown, re.M)
    assert re.search(r"^WORKER +SESSIONS ", shown, re.M) and re.search(r"^opened +1$", shown, re.M)
    client.close_politely()


def test_a_session_has_all_that_is_known(start, broker, tls):
    leat = start(broker, listen="amqps://127.0.0.1:0")
    client = amqp_wire.Client(leat.port, tls).connect(
        heartbeat=7, properties={"connection_name": "billing 7"})
    client.send(amqp_wire.method(1, "channel.open", amqp_wire.shortstr("")))
    address = "127.0.0.1:%d" % client.sock.getsockname()[1]
    broker.wait_sessions(1)
    flow.wait_status(leat, lambda status: status["frames_in"] >= 1)
    session = the_session(leat)
    assert set(session) == SESSION_MEMBERS | {"connection_name"}
    assert session["client"] == address and session["state"] == "open"
    assert session["listener"] == f"amqps://127.0.0.1:{leat.port}"
    assert (session["user"], session["vhost"], session["connection_name"]) == (
        "guest", "/", "billing 7")
    assert session["backend_address"] == f"127.0.0.1:{broker.port}"
    assert session["tls"]["version"] == "TLSv1.3" and session["backend_tls"] is None
    assert session["heartbeat_s"] == {"client": 7, "broker": 7}
    assert (session["frame_max"], session["channel_max"]) == (131072, 2047)
    assert session["frames_in"] >= 1 and session["bytes_in"] >= 13
    assert session["queued_to_broker"] == 0 and session["waits"] is None
    shown = control.done(leat.socket, "session", session["id"], "show")
    assert f"client              {address}\n" in shown and "TLSv1.3" in shown
    one = control.answer(leat.socket, "session", session["id"], "show")["session"]
    assert set(one) == set(session)
    client.close_politely()


def test_a_session_in_its_handshake_is_listed_too(leat):
    client = amqp_wire.Client(leat.port)
    client.greet()
    session = the_session(leat)
    assert session["state"] == "handshake" and "connection_name" not in session
    for name in ("user", "vhost", "farm", "backend", "backend_address", "frame_max"):
        assert session[name] is None, session
    assert " handshake  127.0.0.1:" in control.done(leat.socket, "sessions")
    client.close()


def test_every_filter(run_broker, filed):
    brokers = [run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT)) for _ in range(2)]
    leat = filed(configuration(*brokers) + "loopback_users: []\n"
                 "farms: { one: { backends: [b0] }, two: { backends: [b1] } }\n"
                 "vhosts: { a: { farm: one }, b: { farm: two } }\n")
    first = amqp_wire.Client(leat.port).ask(user="ann", vhost="a")
    first.expect("connection.open-ok")
    second = amqp_wire.Client(leat.port).ask(user="bob", vhost="b")
    second.expect("connection.open-ok")
    third = amqp_wire.Client(leat.port)
    third.greet()
    ids = {one["user"]: one["id"] for one in control.sessions(leat.socket)}
    assert set(ids) == {"ann", "bob", None}
    address = "127.0.0.1:%d" % first.sock.getsockname()[1]
    both = {ids["ann"], ids["bob"]}
    for filters, expected in (
            (["--vhost", "a"], {ids["ann"]}), (["--user", "bob"], {ids["bob"]}),
            (["--backend", "b0"], {ids["ann"]}),
            (["--backend", f"127.0.0.1:{brokers[1].port}"], {ids["bob"]}),
            (["--client", address], {ids["ann"]}), (["--client", "127.0.0.1"], set(ids.values())),
            (["--client", "127.0.0.2"], set()), (["--client", "[127.0.0.1]"], set(ids.values())),
            (["--client", "[]"], set()), (["--state", "open"], both),
            (["--state", "handshake"], {ids[None]}),
            (["--listener", f"amqp://127.0.0.1:{leat.port}"], set(ids.values())),
            (["--listener", f"127.0.0.1:{leat.port}"], set(ids.values())),
            (["--listener", "amqp://127.0.0.1:1"], set()),
            (["--state", "open", "--user", "ann", "--vhost", "a"], {ids["ann"]}),
            (["--user", "ann", "--vhost", "b"], set()), (["--vhost", ""], set())):
        listed = [one["id"] for one in control.sessions(leat.socket, *filters)]
        assert sorted(listed) == sorted(expected), filters
    table = control.done(leat.socket, "sessions").splitlines()
    assert [int(row.split()[0]) for row in table[1:-1]] == sorted(ids.values())
    assert table[-1] == "3 sessions"
    sentence = control.refused(leat.socket, "sessions", "--state", "opne")
    assert 'did you mean "open"?' in sentence
    for client in (first, second, third):
        client.close()


def come_and_go(leat, vhost="/"):
    client = amqp_wire.Client(leat.port).ask(vhost=vhost)
    client.expect("connection.open-ok")
    client.close_politely()


def follow(leat, *filters):
    """A follower, in force."""
    watch = control.Watch(leat.socket, "sessions", "--follow", "--json", *filters)
    watch.wait('"following":true')
    return watch


def test_follow_tells_each_beginning_and_end(leat):
    watches = [follow(leat), follow(leat), follow(leat, "--vhost", "elsewhere")]
    come_and_go(leat)
    opened, ended = (json.loads(watches[0].wait(f'"event":"{event}"'))
                     for event in ("opened", "ended"))
    assert TIME.fullmatch(opened["time"]) and set(opened["session"]) == SESSION_MEMBERS
    assert ended["session"]["id"] == opened["session"]["id"]
    assert (ended["how"], ended["by"]) == ("closed", "client")
    assert ended["reason"] == "it closed with 200 bye" and "code" not in ended
    come_and_go(leat, vhost="elsewhere")
    for watch, count in zip(watches, (2, 2, 1)):
        watch.wait('"event":"ended"', count)
        assert len(watch.lines) == 1 + 2 * count
    assert watches[0].lines == watches[1].lines
    assert all('"vhost":"elsewhere"' in line for line in watches[2].lines[1:])
    for watch in watches:
        watch.interrupt()


def test_follow_in_words(leat):
    watch = control.Watch(leat.socket, "sessions", "--follow")
    line = watch.provoke("opened", lambda: come_and_go(leat))
    opened = re.fullmatch(TIME.pattern + r" session (\d+) opened: client "
                          r"127\.0\.0\.1:\d+, user guest, vhost /, backend \S+", line)
    assert opened, line
    assert f"session {opened[1]} closed by client: it closed with 200 bye; client 127" in (
        watch.wait(f"session {opened[1]} closed"))
    watch.interrupt()


def test_follow_tells_of_what_never_opened(leat):
    watch = follow(leat)
    client = amqp_wire.Client(leat.port)
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    client.recv_to_end()
    client.close()
    ended = json.loads(watch.wait('"failed"'))
    assert ended["event"] == "ended" and ended["by"] == "client"
    watch.interrupt()


def traced(leat, client, *args):
    """A trace of CLIENT's session, in force."""
    address = "127.0.0.1:%d" % client.sock.getsockname()[1]
    number = the_session(leat, "--client", address)["id"]
    watch = control.Watch(leat.socket, "session", number, "trace", "--json", *args)
    watch.wait(f'"tracing":{number}')
    return watch


def test_trace_tells_each_frame(leat, broker):
    client, other = (amqp_wire.Client(leat.port).connect() for _ in range(2))
    watch = traced(leat, client)
    other.send(amqp_wire.method(7, "channel.open", amqp_wire.shortstr("")))
    client.send(amqp_wire.method(1, "channel.open", amqp_wire.shortstr("")))
    client.send(amqp_wire.frame(amqp_wire.BODY, 1, b"secret payload"))
    other.close_politely()
    client.close_politely()
    status, errors = watch.end()
    assert (status, errors) == (0, "")
    frames = [json.loads(line) for line in watch.lines]
    assert frames[0] == {"ok": True, "tracing": frames[-1]["session"]["id"]}
    assert frames[-1]["event"] == "ended" and frames[-1]["how"] == "closed"
    told = [(one["from"], one["to"], one["leg"], one["channel"], one["method"], one["size"])
            for one in frames[1:-1]]
    assert told[:2] == [("client", "broker", "client", 1, "channel.open", 5),
                        ("client", "broker", "client", 1, "body", 14)]
    assert [one[4] for one in told[2:]] == ["connection.close", "connection.close-ok"]
    assert told[-1][:3] == ("broker", "client", "broker")
    assert all(TIME.fullmatch(one["time"]) for one in frames[1:])
    assert "secret" not in "".join(watch.lines)
    assert leat.find("channel=1") == []  # the log is not the trace's


def test_trace_in_words(leat):
    client = amqp_wire.Client(leat.port).connect()
    number = the_session(leat)["id"]
    watch = control.Watch(leat.socket, "session", number, "trace")
    open_channel = amqp_wire.method(1, "channel.open", amqp_wire.shortstr(""))
    line = watch.provoke("client->broker", lambda: client.send(open_channel))
    assert re.fullmatch(TIME.pattern + r" client->broker channel 1 channel\.open 5 bytes", line)
    client.close_politely()
    assert watch.end() == (0, "")
    assert f"session {number} closed by client: it closed with 200 bye" in watch.lines[-1]


def test_trace_of_a_handshake(leat):
    client = amqp_wire.Client(leat.port)
    client.greet()
    watch = traced(leat, client)
    client.send_method("connection.start-ok", amqp_wire.start_ok_args())
    client.tune_ok(amqp_wire.NO_HEARTBEAT)
    client.open()
    client.close_politely()
    assert watch.end() == (0, "")
    told = [(one["from"], one["to"], one["method"]) for one in map(json.loads, watch.lines[1:-1])]
    assert told[:2] == [("client", "leat", "connection.start-ok"),
                        ("leat", "client", "connection.tune")]
    assert ("leat", "broker", "connection.start-ok") in told
    assert ("leat", "client", "connection.open-ok") in told


def test_close_is_seen_by_a_real_client(start, rabbit):
    leat = start(rabbit)
    connection = clients.connect(leat.port, name="to be closed")
    session = the_session(leat)
    assert session["connection_name"] == "to be closed"
    assert control.done(leat.socket, "session", session["id"], "close") == (
        f"session {session['id']} is being closed\n")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        connection.process_data_events(clients.SECONDS)
    assert (caught.value.reply_code, caught.value.reply_text) == GONE
    line = leat.the_end("closed", "leat")
    assert "operator" in line.text
    assert control.sessions(leat.socket) == []


def test_close_waits_for_what_the_client_sends_before_close_ok(start, run_broker):
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    client = amqp_wire.Client(leat.port).connect()
    number = the_session(leat)["id"]
    body = amqp_wire.frame(amqp_wire.BODY, 1, 1000 * b"x")
    client.send(body[:500])  # inside a frame no Close may come
    flow.wait_status(leat, lambda status: status["bytes_in"] >= 500)
    control.answer(leat.socket, "session", number, "close")
    assert client.take_close(body[500:] + body) == GONE
    broker.wait_ended()
    assert broker.sessions[0].received.startswith(body + body)


@pytest.mark.parametrize("stalled", ["client", "broker"])
def test_waits_names_the_side_that_takes_nothing(start, run_broker, stalled):
    broker = run_broker(amqp_wire.held(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    client = amqp_wire.Client(leat.port).connect()
    assert the_session(leat)["waits"] is None
    flow.send_until_queued(leat, client if stalled == "broker" else broker.wait_sessions(1)[0])
    flow.await_true(lambda: the_session(leat)["waits"] is not None)
    session = the_session(leat)
    assert session["waits"] == stalled and session[f"queued_to_{stalled}"] > 0
    assert re.search(f" {stalled} ", control.done(leat.socket, "sessions").splitlines()[1])
    control.answer(leat.socket, "session", session["id"], "kill")
    client.close()


def test_kill_cuts_at_once(start, run_broker):
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    client = amqp_wire.Client(leat.port).connect()
    number = the_session(leat)["id"]
    assert control.done(leat.socket, "session", number, "kill") == f"session {number} was cut\n"
    assert client.recv_to_end() == b""
    broker.wait_ended()
    assert broker.sessions[0].received == b""
    line = leat.the_end("closed", "leat")
    assert "killed by the operator" in line.text
    assert control.refused(leat.socket, "session", number, "kill", status=4) == (
        f"there is no session {number}")
    client.close()


def test_a_handshake_can_be_closed_and_killed(leat):
    for action in ("close", "kill"):
        client = amqp_wire.Client(leat.port)
        client.greet()
        control.answer(leat.socket, "session", the_session(leat)["id"], action)
        client.recv_to_end()
        client.close()
        flow.wait_status(leat, lambda status: status["handshakes"] == 0)


@pytest.mark.parametrize("action", ["show", "close", "kill", "trace"])
def test_no_such_session_is_4(leat, action):
    for number in (0, 999, 2**63 - 1):
        assert control.refused(leat.socket, "session", number, action, status=4) == (
            f"there is no session {number}")


def test_reload(filed, broker):
    leat = filed(configuration(broker))
    good = leat.file.read_text()
    assert control.done(leat.socket, "reload") == "reloaded: new connections have it from now on\n"
    leat.file.write_text(good + "timeouts: { tls: never }\n")
    sentence = control.refused(leat.socket, "reload")
    assert "timeouts.tls: expected" in sentence
    leat.file.write_text(good.replace("leat.sock", "other.sock"))
    assert "control.socket: it can't change without a restart" in control.refused(
        leat.socket, "reload")
    told = control.answer(leat.socket, "status")["configuration"]
    assert (told["file"], told["reloads"], told["failed_reloads"]) == (str(leat.file), 1, 2)
    assert "control.socket" in told["last_failure"]["reason"]
    assert len(leat.find("reload", "failed,")) == 2
    leat.file.write_text(good + "limits: { sessions: 7 }\n")
    control.done(leat.socket, "reload")
    assert control.answer(leat.socket, "status")["sessions_max"] == 7


def test_drain(start, broker):
    leat = start(broker, more=["--drain.close_after", "60s", "--drain.close_until", "61s",
                               "--drain.end", "62s"])
    client = amqp_wire.Client(leat.port).connect()
    assert control.done(leat.socket, "drain") == "draining: 1 connection is left\n"
    assert "draining already" in control.refused(leat.socket, "drain")
    assert control.answer(leat.socket, "status")["state"] == "draining"
    assert "drain" in control.refused(leat.socket, "reload")
    control.answer(leat.socket, "session", the_session(leat)["id"], "close")
    assert client.take_close() == GONE
    assert leat.end() == 0
    assert not leat.socket.exists()
    assert "no leat listens" in control.refused(leat.socket, "status", status=3)


def test_a_follower_is_told_that_leat_ends(leat):
    watch = follow(leat)
    leat.stop()
    assert watch.end() == (0, "")
    assert json.loads(watch.lines[-1]) == {"event": "stopped"}


def test_a_follower_is_told_that_leat_is_gone(broker, tmp_path):
    path = tmp_path / "leat.sock"
    gone = leats.Leat("amqp://127.0.0.1:0", f"amqp://127.0.0.1:{broker.port}",
                      more=["--control-socket", path])
    gone.socket = path
    watch = follow(gone)
    gone.kill()
    status, errors = watch.end()
    assert status == 3 and "leat has ended the connection" in errors


def test_the_log_level_is_what_is_logged(filed, broker):
    leat = filed(configuration(broker))
    assert control.done(leat.socket, "log") == "info\n"
    amqp_wire.Client(leat.port).connect().close_politely()
    leat.wait("closed")
    assert not [line for line in leat.lines if line.level == "debug"]
    assert control.done(leat.socket, "log", "debug") == "debug\n"
    amqp_wire.Client(leat.port).connect().close_politely()
    assert leat.wait(state="open").level == "debug"
    leat.wait("closed", number=1)
    assert control.done(leat.socket, "log", "error") == "error\n"
    since = len(leat.lines)
    amqp_wire.Client(leat.port).connect().close_politely()
    assert control.answer(leat.socket, "status")["log_level"] == "error"
    control.done(leat.socket, "reload")
    assert control.done(leat.socket, "log") == "info\n"
    amqp_wire.Client(leat.port).connect().close_politely()
    leat.wait("closed", since=since)
    assert len(leat.find("opened", since=since)) == 1


CONFIGURATION = """
backends:
  "null": { address: amqp://127.0.0.1:1, weight: 3 }
  far: { address: "amqps://[::1]:5671", name: "far.example" }
farms: { "a b": { backends: ["null", far] }, "12": { backends: [far] } }
vhosts: { "/": { farm: "a b" }, "~": { backend: far }, "ünï: *": { farm: "12" } }
default: { farm: "12" }
loopback_users: [guest, "on"]
timeouts: { tls: 1500ms, connect: 2m }
limits: { session_queue: 64KiB, queue: 1GiB, sessions: 77, initial_frame: 5000 }
tune: { heartbeat: 0 }
workers: 2
"""


def test_the_configuration_shown_is_one_that_leat_takes(filed, tmp_path, certs):
    (tmp_path / "c").mkdir()
    for name in ("cert", "key"):
        (tmp_path / "c" / f"{name}.pem").write_bytes(getattr(certs, name).read_bytes())
    leat = filed("listeners:\n  - { address: 'amqps://127.0.0.1:0', cert: c/cert.pem, "
                 "key: c/key.pem }\n  - { address: 'amqp://127.0.0.1:0' }\n" + CONFIGURATION,
                 listeners=2)
    first = control.answer(leat.socket, "config", "show")["config"]
    assert first["timeouts"]["tls"] == "1500ms" and first["timeouts"]["connect"] == "120s"
    assert first["timeouts"]["close"] == "10s" and first["workers"] == 2
    assert first["limits"]["queue"] == "1GiB" and first["loopback_users"] == ["guest", "on"]
    shown = control.done(leat.socket, "config", "show")
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    copy = directory / "leat.yaml"
    copy.write_text(shown)
    checked = leats.run("check", "-c", copy)
    assert checked.returncode == 0, checked
    leat.stop()
    again = leats.Leat(file=copy, listeners=2)
    try:
        assert control.answer(leat.socket, "config", "show")["config"] == first
        assert control.done(leat.socket, "config", "show") == shown
    finally:
        again.stop()


def test_backends_tell_what_was_wrong(start, rabbit):
    with amqp_wire.socket.create_server(("127.0.0.1", 0)) as holder:
        dead = holder.getsockname()[1]
    leat = start(dead, rabbit)
    before = control.answer(leat.socket, "backends")["backends"]
    assert [one["state"] for one in before] == ["unknown", "unknown"]
    assert [one["version"] for one in before] == [None, None]
    connections = [clients.connect(leat.port) for _ in range(2)]
    bad, good = control.answer(leat.socket, "backends")["backends"]
    assert (bad["address"], bad["state"], bad["sessions"]) == (f"127.0.0.1:{dead}", "back-off", 0)
    assert bad["failures"] >= 1 and "refused" in bad["last_failure"]["reason"]
    assert (good["state"], good["sessions"], good["opened"], good["failures"]) == ("up", 2, 2, 0)
    assert good["product"] == "RabbitMQ" and good["version"].startswith("3.")
    assert good["tls"] is False and good["weight"] == 1 and good["last_failure"] is None
    shown = control.done(leat.socket, "backends")
    assert f"{bad['name']} failed last at {bad['last_failure']['time']}: " in shown
    assert re.search(r"^\S+ +127\.0\.0\.1:\d+ .* up .* RabbitMQ +3\.", shown, re.M)
    for connection in connections:
        connection.close()


def test_tls_tells_which_certificates_are_in_use(start, broker, certs):
    leat = start(broker, "amqps://127.0.0.1:1", listen="amqps://127.0.0.1:0",
                 more=["--backend-ca", certs.ca])
    told = control.answer(leat.socket, "tls")
    listener, backend = told["contexts"]
    assert told["builds"] == 2 and listener["used_by"] == ["listeners[0]"]
    assert listener["cert"] == str(certs.cert) and "CN" in listener["subject"]
    assert sorted(listener["names"]) == ["127.0.0.1", "localhost"]
    assert listener["days_left"] == 29 and TIME.fullmatch(listener["not_after"])
    assert backend["used_by"][0].startswith("backends.") and backend["ca"] == str(certs.ca)
    shown = control.done(leat.socket, "tls")
    assert "days left           29\n" in shown
    assert shown.endswith("2 contexts, 2 built since the start\n")
    control.done(leat.socket, "reload")
    assert control.answer(leat.socket, "tls")["builds"] >= 2


def test_names_of_any_bytes(start, broker):
    leat = start(broker)
    client = amqp_wire.Client(leat.port)
    client.greet()
    client.send_method("connection.start-ok", amqp_wire.start_ok_args(
        response=b"\0us\xffer\x1b[31m\0word"))
    client.tune_ok(amqp_wire.NO_HEARTBEAT)
    client.open("v\x9b\"\u202eh")
    session = the_session(leat, "--user", "us\\xffer\x1b[31m")
    assert (session["user"], session["vhost"]) == ("us\\xffer\x1b[31m", "v\x9b\"\u202eh")
    for text in (control.done(leat.socket, "sessions"),
                 control.done(leat.socket, "session", session["id"], "show")):
        assert "us\\xffer\\x1b[31m" in text and 'v\\u009b"\\u202eh' in text
        assert text.replace("\n", "").isprintable()
    client.close_politely()
