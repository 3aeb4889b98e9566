# SPDX-License-Identifier: Apache-2.0
"""The control socket itself: whose it is, what it takes, and what it costs who reads slowly."""
import os
import signal
import socket
import stat

import pytest

import amqp_wire
import control
import flow
import leat as leats

LISTEN = ["--listen", "amqp://127.0.0.1:0", "--backend", "amqp://127.0.0.1:1"]
LINE_MAX = 65536
CONNECTIONS_MAX = 32
WATCHERS_MAX = 28


@pytest.fixture
def path(tmp_path):
    return tmp_path / "leat.sock"


@pytest.fixture
def start(plain_leat, path):
    """Starts leats with the control socket at `path`."""
    def run(*backends, more=(), **options):
        return plain_leat(*(backends or [1]), more=["--control-socket", path, *more], **options)

    return run


@pytest.fixture
def leat(start):
    return start()


def refused(path):
    """Starts a leat that must refuse the control socket PATH; returns its sentence."""
    done = leats.run(*LISTEN, "--control-socket", path)
    assert done.returncode == 2, done
    return done.stderr.splitlines()[-1]


def leave_stale(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()


# Whose it is.

def test_it_is_its_owners_only_and_goes_with_leat(start, path):
    before = os.umask(0)
    try:
        leat = start()
    finally:
        os.umask(before)
    info = path.stat()
    assert stat.S_ISSOCK(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o600
    assert info.st_uid == os.getuid()
    leat.stop()
    assert not path.exists()


def test_without_the_option_there_is_none(plain_leat):
    leat = plain_leat(1)
    with open("/proc/net/unix", encoding="utf-8") as table:
        known = {line.split()[6] for line in table if len(line.split()) > 7}
    links = [os.readlink(f"/proc/{leat.process.pid}/fd/{one}")
             for one in os.listdir(f"/proc/{leat.process.pid}/fd")]
    assert not [one for one in links if one.removeprefix("socket:[").rstrip("]") in known]


def test_a_stale_socket_is_replaced(start, path):
    leave_stale(path)
    start()
    assert control.answer(path, "status")["state"] == "running"


def test_what_a_killed_leat_left_is_replaced(start, path):
    leats.Leat("amqp://127.0.0.1:0", "amqp://127.0.0.1:1", more=["--control-socket", path]).kill()
    assert path.exists()
    control.refused(path, "status", status=3)
    start()
    assert control.answer(path, "status")["state"] == "running"


def test_the_socket_of_a_live_leat_is_refused(leat, path):
    sentence = refused(path)
    assert f"answers at {path}, process {leat.process.pid}: stop it" in sentence
    assert control.answer(path, "status")["pid"] == leat.process.pid


@pytest.mark.parametrize("kind", ["file", "directory", "pipe", "link to a file", "dangling link"])
def test_what_is_no_socket_is_refused_and_stays(path, tmp_path, kind):
    other = tmp_path / "other"
    if kind == "file":
        path.write_text("precious")
    elif kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        if kind == "link to a file":
            other.write_text("precious")
        path.symlink_to(other)
    before = path.lstat()
    assert str(path) in refused(path)
    assert os.path.samestat(before, path.lstat())
    assert kind != "link to a file" or other.read_text() == "precious"


def test_what_took_its_place_is_left_alone(start, path):
    leat = start()
    path.unlink()
    leave_stale(path)
    leat.stop()
    assert path.exists()


@pytest.mark.parametrize("left", ["nothing", "another's socket", "a file", "a live socket"])
def test_a_reload_makes_it_anew(run_file, path, left):
    leat = run_file(f"control: {{ socket: {path.name} }}\n"
                    "listeners: [{ address: amqp://127.0.0.1:0 }]\n"
                    "backends: { b: { address: amqp://127.0.0.1:1 } }\n")
    with control.Raw(path) as raw, socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        if left == "a file":
            path.write_text("precious")
        elif left != "nothing":
            other.bind(str(path))
            if left == "a live socket":
                other.listen()
        leat.process.send_signal(signal.SIGHUP)
        leat.wait("reloaded:")
        assert raw.ask(verb="log")["ok"]
        assert leat.process.pid == raw.ask(verb="status")["pid"]
        if left in ("a file", "a live socket"):
            assert str(path) in leat.wait("control.socket:").text
            path.unlink()
            assert raw.ask(verb="reload")["ok"]
        assert control.answer(path, "status")["pid"] == leat.process.pid
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    leat.stop()
    assert not path.exists()


def test_a_directory_that_is_not_there_is_named(tmp_path):
    assert str(tmp_path / "none") in refused(tmp_path / "none" / "leat.sock")


def test_a_path_that_is_too_long_is_named():
    assert "107" in refused("/" + 107 * "x")


def test_check_leaves_the_socket_alone(leat, path, tmp_path):
    file = tmp_path / "leat.yaml"
    file.write_text("listeners: [{ address: amqp://127.0.0.1:0 }]\n"
                    "backends: { b: { address: amqp://127.0.0.1:1 } }\n"
                    f"control: {{ socket: {path} }}\n")
    assert leats.run("check", "-c", file).returncode == 0
    assert control.answer(path, "status")["pid"] == leat.process.pid


# What it takes.

@pytest.mark.parametrize("line, mention", [
    (b"", "a request is"), (b"status", "a request is"), (b"GET / HTTP/1.1\r", "a request is"),
    (b"[1]", "a request is"), (b"null", "a request is"), (b"\xff\xfe\0", "a request is"),
    (b"{", "no JSON"), (b'{"verb":"status"', "no JSON"), (b'{"verb":"status"}x', "no JSON"),
    (b'{"verb":"\xff"}', "no JSON"), (b'{"verb":"status","verb":"drain"}', "no JSON"),
    (b'{"verb":' + 5000 * b"[", "no JSON"), (b'{"verb":"a\\u0000b"}', "no JSON"),
    (b"{}", "no verb"), (b'{"verb":1}', "no verb"), (b'{"verb":null}', "no verb"),
    (b'{"verb":"stauts"}', 'did you mean "status"?'),
    (b'{"verb":"\\u001b[2J\\nx"}', "unknown verb"),
    (b'{"verb":"' + 60000 * b"x" + b'"}', "unknown verb"),
    (b'{"verb":"status","id":1}', 'status takes no members, got "id"'), (b'{"verb":"sessions","vhots":"/"}', 'mean "vhost"?'),
    (b'{"verb":"sessions","vhost":1}', "vhost"), (b'{"verb":"sessions","follow":"yes"}', "follow"),
    (b'{"verb":"sessions","state":"opne"}', 'mean "open"?'),
    (b'{"verb":"session"}', "id"), (b'{"verb":"session","id":1}', "action"),
    (b'{"verb":"session","id":"1","action":"show"}', "id"),
    (b'{"verb":"session","id":1.5,"action":"show"}', "id"),
    (b'{"verb":"session","id":1e2,"action":"show"}', "id"),
    (b'{"verb":"session","id":99999999999999999999,"action":"show"}', "no JSON"),
    (b'{"verb":"session","id":1,"action":"clsoe"}', 'mean "close"?'),
    (b'{"verb":"log","level":"loud"}', "level"), (b'{"verb":"log","level":3}', "level"),
])
@pytest.mark.usefixtures("leat")
def test_a_wrong_request_is_said_and_the_connection_goes_on(path, line, mention):
    with control.Raw(path) as raw:
        for end in (b"\n", b" \r\n"):
            raw.send(line + end)
            answer = raw.take()
            assert set(answer) == {"ok", "kind", "error"} and answer["ok"] is False, answer
            assert answer["kind"] == "usage" and mention in answer["error"], answer
            assert "\n" not in answer["error"] and answer["error"].isprintable()
        assert raw.ask(verb="log") == {"ok": True, "level": "info"}


@pytest.mark.usefixtures("leat")
def test_no_session_is_not_found(path):
    with control.Raw(path) as raw:
        for number in (-1, 0, 1, 2**63 - 1):
            for action in ("show", "close", "kill", "trace"):
                answer = raw.ask(verb="session", id=number, action=action)
                assert answer["kind"] == "not_found" and str(number) in answer["error"], answer


@pytest.mark.usefixtures("leat")
@pytest.mark.parametrize("piece", [1, 7, 100000])
def test_many_requests_on_one_connection(path, piece):
    """In order, however they are cut, also if the client ends its side behind them."""
    requests = b"".join(b'{"verb":"session","id":%d,"action":"show"}\n{"verb":"sessions"}\nx\n'
                        % number for number in range(1000, 1020))
    with control.Raw(path) as raw:
        for at in range(0, len(requests), piece):
            raw.send(requests[at:at + piece])
        raw.sock.shutdown(socket.SHUT_WR)
        for number in range(1000, 1020):
            assert str(number) in raw.take()["error"]
            assert raw.take() == {"ok": True, "sessions": []}
            assert raw.take()["kind"] == "usage"
        assert raw.take() is None


@pytest.mark.usefixtures("leat")
def test_a_line_without_an_end_is_told(path):
    with control.Raw(path) as raw:
        raw.send(b'{"verb":"log"}\n{"verb":"log"}')
        assert raw.take()["ok"]
        raw.sock.shutdown(socket.SHUT_WR)
        assert raw.take() == {"ok": False, "kind": "usage", "error": "the line has no end"}
        assert raw.take() is None


@pytest.mark.usefixtures("leat")
def test_the_longest_line_and_one_that_is_longer(path):
    whole = b'{"verb":"log"' + (LINE_MAX - len('{"verb":"log"}')) * b" " + b"}"
    with control.Raw(path) as raw:
        raw.send(whole + b"\n")
        assert raw.take()["ok"] is True
        raw.send(b" " + whole + b"\n" + b'{"verb":"log"}\n')
        answer = raw.take()
        assert answer["kind"] == "usage" and "64 KiB" in answer["error"]
        assert raw.take() is None
    with control.Raw(path) as raw:
        raw.send((LINE_MAX + 1) * b"x")
        assert raw.take()["kind"] == "usage"
        assert raw.take() is None


def test_one_connection_too_many_is_told(leat, path):
    raws = [control.Raw(path) for _ in range(CONNECTIONS_MAX)]
    assert all(raw.ask(verb="log")["ok"] for raw in raws)
    with control.Raw(path) as one_more:
        answer = one_more.take()
        assert answer["ok"] is False and answer["kind"] == "limit" and "32" in answer["error"]
        assert one_more.take() is None
    assert "32" in control.refused(path, "status")
    assert raws[0].ask(verb="log")["ok"]
    descriptors = flow.descriptors(leat)
    raws.pop().close()
    while flow.descriptors(leat) == descriptors:
        flow.pause(flow.POLL_SECONDS)
    assert control.answer(path, "log")["ok"]
    for raw in raws:
        raw.close()


def test_connections_that_say_nothing_cost_nothing(leat, path):
    raws = [control.Raw(path) for _ in range(10)]
    raws[0].send(b'{"verb":')
    flow.at_rest(leat)
    for raw in raws:
        raw.close()


def test_who_goes_away_in_the_middle_is_forgotten(leat, path):
    descriptors = flow.descriptors(leat)
    for request in (b"", b"{", b'{"verb":"sessions"}\n' * 100,
                    b'{"verb":"sessions","follow":true}\n'):
        for _ in range(5):
            with control.Raw(path) as raw:
                raw.send(request)
    assert control.answer(path, "status")["ok"]
    flow.at_rest(leat)
    assert flow.descriptors(leat) == descriptors


# Many sessions, and slow readers.

def test_two_thousand_sessions(start, path):
    leat = start(more=["--timeouts.handshake", "120s", "--limits.handshakes", "4096"])
    room = control.answer(path, "status")["handshakes_max"]
    count = min(2000, room)
    clients = [socket.create_connection(("127.0.0.1", leat.port)) for _ in range(count)]
    flow.wait_status(leat, lambda status: status["handshakes"] == count)
    listed = control.sessions(path)
    assert len(listed) == len({one["id"] for one in listed}) == count
    addresses = {"127.0.0.1:%d" % one.getsockname()[1] for one in clients}
    assert {one["client"] for one in listed} == addresses
    with control.Raw(path) as raw:
        raw.send(b'{"verb":"sessions"}\n' * 20)  # nothing is read yet
        assert control.answer(path, "log")["ok"]  # and others are answered
        assert all(len(raw.take()["sessions"]) == count for _ in range(20))
    table = control.done(path, "sessions").splitlines()
    assert table[-1] == f"{count} sessions"
    assert [int(row.split()[0]) for row in table[1:-1]] == sorted(one["id"] for one in listed)
    for client in clients:
        client.close()


def test_a_slow_reader_loses_lines_and_nobody_waits(start, run_broker, path):
    broker = run_broker(amqp_wire.recording(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    client = amqp_wire.Client(leat.port).connect()
    number = control.sessions(path)[0]["id"]
    one, count = amqp_wire.frame(amqp_wire.BODY, 1, b"x"), 40000
    with control.Raw(path) as raw:
        assert raw.ask(verb="session", id=number, action="trace") == {"ok": True, "tracing": number}
        for _ in range(count // 1000):
            client.send(1000 * one)
        # Traffic goes on, to its end, while the trace is not read at all.
        client.close()
        broker.wait_ended()
        assert broker.sessions[0].received.startswith(count * one)
        events = list(iter(raw.take, None))
    lost = sum(event["lines"] for event in events if event["event"] == "lost")
    told = sum(event["event"] == "frame" for event in events)
    assert lost > 0 and told > 1000
    assert count <= told + lost <= count + 2  # leat's own Close may be among them
    assert events[-1]["event"] == "ended" and events[-1]["session"]["id"] == number


def test_a_slow_follower_hears_how_much_it_lost(start, run_broker, path):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    count, told, lost = 1500, 0, 0
    with control.Raw(path) as raw:
        assert raw.ask(verb="sessions", follow=True)["following"]
        for _ in range(count):
            amqp_wire.Client(leat.port).connect().close_politely()
        flow.wait_status(leat, lambda status: status["closed"] == count)
        while told + lost < 2 * count:  # without another session
            event = raw.take()
            lost += event.get("lines", 0)
            told += event["event"] != "lost"
    assert told + lost == 2 * count and lost > 0 and told > 100


def test_watchers_end_with_their_connection(start, run_broker, path):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = start(broker)
    client = amqp_wire.Client(leat.port).connect()
    number = control.sessions(path)[0]["id"]
    descriptors = flow.descriptors(leat)
    for _ in range(3):
        raws = [control.Raw(path) for _ in range(20)]
        for raw in raws[:10]:
            assert raw.ask(verb="sessions", follow=True)["ok"]
        for raw in raws[10:]:
            assert raw.ask(verb="session", id=number, action="trace")["ok"]
        for raw in raws:
            raw.close()
    client.send(amqp_wire.method(1, "channel.open", amqp_wire.shortstr("")))
    client.close_politely()
    leat.wait("closed")
    flow.at_rest(leat)
    assert flow.descriptors(leat) == descriptors - 2


def test_leat_ends_while_it_is_watched(start, run_broker, path):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = start(broker, more=["--drain.close_after", "0s", "--drain.close_until", "100ms"])
    client = amqp_wire.Client(leat.port).connect()
    number = control.sessions(path)[0]["id"]
    with control.Raw(path) as follower, control.Raw(path) as tracer:
        assert follower.ask(verb="sessions", follow=True)["ok"]
        assert tracer.ask(verb="session", id=number, action="trace")["ok"]
        leat.process.send_signal(signal.SIGTERM)
        client.take_close()
        assert leat.end() == 0
        assert [one["event"] for one in iter(follower.take, None)] == ["ended", "stopped"]
        assert list(iter(tracer.take, None))[-1]["event"] == "ended"


@pytest.mark.parametrize("how", ["drain.end", "a second signal"])
def test_sessions_that_are_cut_at_the_end_are_told_of(start, run_broker, path, how):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    end = "100ms" if how == "drain.end" else "60s"
    leat = start(broker, more=["--drain.close_after", "0s", "--drain.close_until", "50ms",
                               "--drain.end", end, "--workers", "2"])
    clients = [amqp_wire.Client(leat.port).connect() for _ in range(3)]
    number = control.sessions(path)[0]["id"]
    with control.Raw(path) as follower, control.Raw(path) as tracer:
        assert follower.ask(verb="sessions", follow=True)["ok"]
        assert tracer.ask(verb="session", id=number, action="trace")["ok"]
        leat.process.send_signal(signal.SIGTERM)
        if how != "drain.end":
            leat.wait("draining:")
            leat.process.send_signal(signal.SIGTERM)
        assert leat.end() == 0
        events = list(iter(follower.take, None))
        assert [one["event"] for one in events] == 3 * ["ended"] + ["stopped"]
        assert all(one["by"] == "leat" for one in events[:-1])
        last = list(iter(tracer.take, None))[-1]
        assert (last["event"], last["session"]["id"]) == ("ended", number)
    for client in clients:
        client.close()


@pytest.mark.usefixtures("leat")
def test_those_who_follow_lock_nobody_out(path):
    raws = [control.Raw(path) for _ in range(WATCHERS_MAX)]
    assert all(raw.ask(verb="sessions", follow=True)["ok"] for raw in raws)
    with control.Raw(path) as one_more:
        for request in ({"verb": "sessions", "follow": True},
                        {"verb": "session", "id": 1, "action": "trace"}):
            answer = one_more.ask(**request)
            assert answer["kind"] == "limit" and "end a leatctl" in answer["error"], answer
        assert one_more.ask(verb="log")["ok"]  # it is of use for anything else
        assert "28" in control.refused(path, "sessions", "--follow")
        raws.pop().close()
        flow.await_true(lambda: one_more.ask(verb="sessions", follow=True)["ok"])
    for raw in raws:
        raw.close()
