# SPDX-License-Identifier: Apache-2.0
"""leatctl against something that is scripted to answer as leat does, or as no leat would: its
command line, how it shows what peers have said, and how it ends."""
import contextlib
import json
import os
import socket
import shutil
import subprocess
import tempfile
import threading

import pytest

import control

SESSION = {
    "id": 17, "state": "open", "client": "192.0.2.7:40122",
    "listener": "amqps://0.0.0.0:5671", "user": "orders", "vhost": "/", "farm": "main",
    "backend": "rabbit1", "backend_address": "10.0.0.11:5672", "seconds": 192,
    "tls": {"version": "TLSv1.3", "cipher": "TLS_AES_128_GCM_SHA256"}, "backend_tls": None,
    "heartbeat_s": {"client": 60, "broker": 30}, "frame_max": 131072, "channel_max": 2047,
    "bytes_in": 1300000, "bytes_out": 512, "frames_in": 3, "frames_out": 4,
    "queued_to_client": 0, "queued_to_broker": 2048, "waits": None,
}


@pytest.fixture
def scripted(tmp_path):
    """Starts what answers in place of a leat; returns the path of its socket."""
    running = []

    def start(script):
        path = tmp_path / f"scripted{len(running)}.sock"
        running.append(control.Scripted(path, script))
        return path

    start.running = running
    yield start
    for one in running:
        one.stop()


def asked(scripted, *args, answer=None):
    """What leatctl asks for with ARGS."""
    path = scripted(control.saying(answer or {"ok": True}))
    control.run(path, "--json", *args)
    return scripted.running[-1].requests[0]


@pytest.mark.parametrize("args, mention", [
    ([], "leatctl --help"),
    (["stauts"], 'did you mean "status"?'),
    (["nothing-like-it"], "known: "),
    (["status", "extra"], "extra"),
    (["status", "--follow"], "--follow"),
    (["backends", "--vhost", "x"], "filters"),
    (["sessions", "--vhots", "x"], 'did you mean "--vhost"?'),
    (["sessions", "--vhost"], "--vhost"),
    (["sessions", "--vhost", "x", "--vhost", "y"], "once"),
    (["sessions", "--follow=yes"], "--follow=yes"),
    (["sessions", "-x"], "-x"),
    (["sessions", "17"], "17"),
    (["session"], "which one"),
    (["session", "17"], "show, close, kill or trace"),
    (["session", "seventeen", "show"], "seventeen"),
    (["session", "-1", "show"], "-1"),
    (["session", "9223372036854775808", "show"], "9223372036854775808"),
    (["session", "17", "clsoe"], 'did you mean "close"?'),
    (["session", "17", "show", "more"], "more"),
    (["log", "loud"], "loud"),
    (["log", "info", "more"], "more"),
    (["config"], "config show"),
    (["config", "set"], "config show"),
    (["help", "stauts"], 'did you mean "status"?'),
    (["-s"], "-s"),
    (["-s", "", "status"], "expected the path"),
    (["-s", "/" + 120 * "x", "status"], "107"),
])
def test_a_wrong_command_line_is_2(args, mention):
    argv = [control.BINARY, *args]
    ran = subprocess.run(argv, capture_output=True, timeout=control.SECONDS, check=False)
    assert ran.returncode == 2 and ran.stdout == b""
    assert ran.stderr.startswith(b"leatctl: ") and ran.stderr.count(b"\n") == 1
    assert mention in ran.stderr.decode()


@pytest.mark.parametrize("args, request_", [
    (["status"], {"verb": "status"}),
    (["sessions"], {"verb": "sessions"}),
    (["sessions", "--vhost=", "--user", "u", "--backend=b=c", "--client", "1.2.3.4", "--listener",
      "amqp://[::]:1", "--state", "open"],
     {"verb": "sessions", "vhost": "", "user": "u", "backend": "b=c", "client": "1.2.3.4",
      "listener": "amqp://[::]:1", "state": "open"}),
    (["--vhost", "--", "sessions", "--follow"],
     {"verb": "sessions", "vhost": "--", "follow": True}),
    (["sessions", "--user", os.fsdecode(b"\xffn")], {"verb": "sessions", "user": "\\xffn"}),
    (["session", "17", "show"], {"verb": "session", "id": 17, "action": "show"}),
    (["session", "9223372036854775807", "kill"],
     {"verb": "session", "id": 9223372036854775807, "action": "kill"}),
    (["backends"], {"verb": "backends"}),
    (["tls"], {"verb": "tls"}),
    (["reload"], {"verb": "reload"}),
    (["drain"], {"verb": "drain"}),
    (["log"], {"verb": "log"}),
    (["log", "debug"], {"verb": "log", "level": "debug"}),
    (["config", "show"], {"verb": "config"}),
])
def test_the_request_is_what_the_command_line_says(scripted, args, request_):
    assert asked(scripted, *args) == request_


def test_the_socket_is_of_the_option_or_the_environment(scripted):
    path = scripted(control.saying({"ok": True, "level": "info"}))
    for args, environment in ((["-s", path, "log"], {"LEAT_SOCKET": "/nonexistent"}),
                              (["log", f"--socket={path}"], {}),
                              (["log"], {"LEAT_SOCKET": str(path)})):
        ran = control.run(None, *args, environment=environment)
        assert (ran.returncode, ran.stdout) == (0, "info\n")
    assert "/run/leat/leat.sock" in control.refused(None, "log", status=3)


def test_help_and_version():
    whole = control.done(None, "--help")
    assert whole == control.done(None, "help") == control.done(None, "-h")
    for verb in ("status", "sessions", "session", "backends", "tls", "reload", "drain", "log",
                 "config", "help"):
        assert f"\n  {verb} " in whole
        text = control.done(None, verb, "--help")
        assert text == control.done(None, "help", verb)
        assert f"leatctl [-s SOCKET] [--json] {verb}" in text
    assert control.done(None, "--version").startswith("leatctl ")


def test_sessions_are_a_table_by_id(scripted):
    path = scripted(control.saying({"ok": True, "sessions": [
        {**SESSION, "id": 117, "connection_name": "billing 7", "waits": "broker"}, SESSION,
        {**SESSION, "id": 9, "user": None, "vhost": "", "backend": None, "seconds": 0}]}))
    lines = control.done(path, "sessions").splitlines()
    assert lines == [
        " ID  STATE  CLIENT           USER    VHOST  BACKEND    FOR       IN    OUT"
        "  WAITS FOR  NAME",
        '  9  open   192.0.2.7:40122  -       ""     -           0s  1.2 MiB  512 B  -          -',
        " 17  open   192.0.2.7:40122  orders  /      rabbit1  3m12s  1.2 MiB  512 B  -          -",
        "117  open   192.0.2.7:40122  orders  /      rabbit1  3m12s  1.2 MiB  512 B  broker"
        "     billing 7",
        "3 sessions"]


def test_a_backend_of_no_farm(scripted):
    backend = {"name": "b", "address": "a", "tls": False, "weight": 1, "farms": [], "state": "up"}
    path = scripted(control.saying({"ok": True, "backends": [backend]}))
    assert control.done(path, "backends").splitlines()[1].split()[:6] == [
        "b", "a", "no", "1", "-", "up"]


def test_no_session_is_no_table(scripted):
    path = scripted(control.saying({"ok": True, "sessions": []}))
    assert control.done(path, "sessions") == "0 sessions\n"


def test_a_session_is_shown_whole(scripted):
    shown = control.done(scripted(control.saying({"ok": True, "session": SESSION})),
                         "session", 17, "show").splitlines()
    assert {tuple(line.split(None, 1)) for line in shown} >= {
        ("session", "17"), ("user", "orders"), ("name", "-"), ("for", "3m12s"),
        ("tls", "version TLSv1.3, cipher TLS_AES_128_GCM_SHA256"), ("frame_max", "131072")}
    assert "tls to broker       none" in shown and "queued to broker    2.0 KiB" in shown
    assert "heartbeat, s        client 60, broker 30" in shown


@pytest.mark.parametrize("hostile, shown", [
    ("\x1b[2J\x07", "\\x1b[2J\\x07"), ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
    ("\x7f\x85\x9b1m", "\\x7f\\u0085\\u009b1m"), ("nul\0end", "nul\\x00end"),
    ("\u202eevil\u2066\u200b\ufeff", "\\u202eevil\\u2066\\u200b\\ufeff"),
    ("\u2028", "\\u2028"), ("Grüße, 世界 🐇", "Grüße, 世界 🐇"), ("100% %s %n", "100% %s %n"),
    ("\\xff", "\\xff"),
])
def test_nothing_of_a_peer_steers_the_terminal(scripted, hostile, shown):
    session = {**SESSION, "vhost": hostile, "connection_name": hostile, "user": hostile}
    opened = {"event": "opened", "time": "2026-11-30T12:03:04.123Z", "session": session}
    for answer, args in (({"sessions": [session]}, ["sessions"]),
                         ({"session": session}, ["session", 17, "show"]),
                         ({"following": True}, ["sessions", "--follow"])):
        ran = control.run(scripted(control.saying({"ok": True, **answer}, opened,
                                                  {"event": "stopped"})), *args)
        assert ran.returncode == 0 and shown in ran.stdout, ran
        assert ran.stdout.replace("\n", "").isprintable(), ran.stdout
    ran = control.run(scripted(control.saying({"ok": False, "kind": "failed", "error": hostile})),
                      "reload")
    assert ran.returncode == 1 and ran.stderr == f"leatctl: {shown}\n"


def test_long_names_are_cut_in_tables_only(scripted):
    session = {**SESSION, "vhost": 300 * "ß", "user": 40 * "ü"}
    path = scripted(control.saying({"ok": True, "sessions": [session], "session": session}))
    table = control.done(path, "sessions")
    assert 37 * "ß" + "...  rabbit1" in table and 38 * "ß" not in table and 40 * "ü" in table
    assert 300 * "ß" in control.done(path, "session", 17, "show")


def test_json_is_passed_on_as_it_comes(scripted):
    text = b'{"ok":true,"sessions":[ {"id":1} ] , "later": "\\u0000\\u001b"}'
    shown = control.done(scripted(control.saying(text)), "--json", "sessions")
    assert shown.encode() == text + b"\n"
    refusal = b'{"ok":false,"kind":"failed","error":"no"}'
    ran = control.run(scripted(control.saying(refusal)), "reload", "--json")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, refusal.decode() + "\n", "leatctl: no\n")


@pytest.mark.parametrize("kind, status", [
    ("usage", 1), ("failed", 1), ("limit", 1), ("memory", 1), ("not_found", 4)])
def test_what_leat_refuses(scripted, kind, status):
    path = scripted(control.saying({"ok": False, "kind": kind, "error": "no session 17"}))
    assert control.refused(path, "session", 17, "kill", status=status) == "no session 17"


@pytest.mark.parametrize("garbage", [
    b"", b"HTTP/1.1 400 Bad Request\r", b"[]", b"{", b"null", b'"ok"', b'{"ok":1}',
    b'{"ok":false}', b'{"ok":false,"kind":"failed"}', b'{"ok":false,"kind":7,"error":8}',
    b'{"ok":true}', b'{"ok":true,"session":[]}', b"\xff\xfe", b"\0" * 100, b"[" * 100000])
def test_what_is_no_leat_is_told_apart(scripted, garbage):
    path = scripted(control.saying(garbage))
    sentence = control.refused(path, "session", 17, "show", status=3)
    assert str(path) in sentence and "of one version" in sentence


@pytest.mark.parametrize("verb, answer", [
    (["status"], {"version": "1"}), (["sessions"], {"sessions": {}}), (["backends"], {}),
    (["tls"], {"contexts": 1}), (["config", "show"], {"config": []}),
    (["session", "1", "show"], {"session": None})])
def test_answers_that_lack_something(scripted, verb, answer):
    control.refused(scripted(control.saying({"ok": True, **answer})), *verb, status=3)


@pytest.mark.parametrize("sessions", [[1, None, "x", [], {}], [{"id": "x", "seconds": -1.5,
                                      "bytes_in": 1e300, "tls": [[[]]]}]])
def test_members_of_another_kind_are_shown_somehow(scripted, sessions):
    path = scripted(control.saying({"ok": True, "sessions": sessions}))
    assert f"{len(sessions)} session" in control.done(path, "sessions")


@pytest.mark.parametrize("said", [b"", b'{"ok":tr', b"x" * 100000])
def test_leat_may_die_before_its_answer(scripted, said):
    sentence = control.refused(scripted(control.saying(said, end=b"")), "status", status=3)
    assert "connection" in sentence


def test_leat_may_die_while_it_is_followed(scripted):
    event = json.dumps({"event": "lost", "lines": 1}).encode()
    path = scripted(control.saying(b'{"ok":true,"following":true}\n' + event + b'\n{"ev', end=b""))
    ran = control.run(path, "sessions", "--follow")
    assert (ran.returncode, ran.stdout) == (3, "lost 1 line, not read in time\n")
    assert "lost" in ran.stderr
    for answer, args in (({"following": True}, ["sessions", "--follow"]),
                         ({"tracing": 17}, ["session", 17, "trace"])):
        path = scripted(control.saying({"ok": True, **answer}))
        assert "ended the connection" in control.refused(path, *args, status=3)


def test_leat_may_stop_while_it_is_followed(scripted):
    path = scripted(control.saying({"ok": True, "following": True}, {"event": "stopped"}))
    assert control.done(path, "sessions", "--follow") == "leat has stopped\n"


def test_a_leat_that_hangs_is_told_apart(scripted, tmp_path):
    """It may be stopped by a signal: the kernel takes connections for it, for a while."""
    gate = threading.Event()

    def late(connection, request):
        gate.wait(control.SECONDS)
        control.saying({"ok": True, "level": "info"})(connection, request)

    argv = [control.BINARY, "-s", scripted(late), "log"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asker:
        assert asker.stderr.readline() == "leatctl: leat has accepted but does not answer yet\n"
        gate.set()
        assert (asker.stdout.read(), asker.wait(control.SECONDS)) == ("info\n", 0)
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind(str(path))
        listener.listen(0)
        other.connect(str(path))  # and so the queue is full
        assert "takes no connections: it hangs or is stopped" in control.refused(
            path, "log", status=3)


TIME = "2026-11-30T12:03:04.123Z"


def test_events_are_words(scripted):
    frame = {"event": "frame", "time": TIME, "from": "client", "to": "broker", "leg": "client",
             "channel": 1, "method": "basic.publish", "size": 24}
    ended = {"event": "ended", "time": TIME, "session": SESSION, "how": "closed", "by": "client",
             "code": 200, "reason": "it closed with 200 bye"}
    lost, other = {"event": "lost", "lines": 2}, {"event": "unheard of", "time": TIME}
    path = scripted(control.saying({"ok": True, "tracing": 17}, frame, lost, other, ended))
    assert control.done(path, "session", 17, "trace").splitlines() == [
        "2026-11-30T12:03:04.123Z client->broker channel 1 basic.publish 24 bytes",
        "lost 2 lines, not read in time",
        "2026-11-30T12:03:04.123Z an event that this leatctl does not know, see --json",
        "2026-11-30T12:03:04.123Z session 17 closed by client: it closed with 200 bye; client 192.0.2.7:40122"]
    opened = {"event": "opened", "time": TIME, "session": SESSION}
    path = scripted(control.saying({"ok": True, "following": True}, opened))
    assert control.run(path, "sessions", "--follow").stdout == (
        "2026-11-30T12:03:04.123Z session 17 opened: client 192.0.2.7:40122, user orders, vhost /, "
        "backend rabbit1\n")


@pytest.mark.parametrize("junk", [b"{}", b'{"event":7}', b'{"event":"frame"}', b"[]", b"1",
                                  b'{"event":"opened","time":7,"session":[]}'])
def test_events_of_another_kind_are_survived(scripted, junk):
    path = scripted(control.saying({"ok": True, "following": True}, junk))
    assert control.run(path, "sessions", "--follow").returncode in (0, 3)


def holding(gate, *lines):
    """A script that says LINES and stays."""
    def script(connection, request):
        control.saying(*lines)(connection, request)
        gate.wait(control.SECONDS)
    return script


def test_ctrl_c_ends_it_with_0(scripted):
    gate = threading.Event()
    lost = {"event": "lost", "lines": 3}
    for answer, args in (({"following": True}, ["sessions", "--follow"]),
                         ({"tracing": 17}, ["session", 17, "trace"])):
        watch = control.Watch(scripted(holding(gate, {"ok": True, **answer}, lost)), *args)
        watch.wait("lost 3 lines")  # and so each line is written as it comes
        watch.interrupt()
    gate.set()


def test_a_reader_who_has_enough_is_no_error(scripted):
    event = {"event": "lost", "lines": 3}

    def endless(connection, request):
        with contextlib.suppress(OSError):
            control.saying({"ok": True, "following": True})(connection, request)
            while True:
                control.saying(event)(connection, request)

    watch = control.Watch(scripted(endless), "sessions", "--follow")
    watch.wait("lost 3 lines")
    head = subprocess.run(
        f"'{control.BINARY}' -s '{scripted(endless)}' sessions --follow | head -n 2; "
        "echo ${PIPESTATUS[0]}", shell=True, executable="/bin/bash", capture_output=True,
        text=True, timeout=control.SECONDS, check=False)
    assert head.stdout.splitlines()[2:] == ["0"] and head.stderr == control.WATCHING
    watch.interrupt()


def test_an_output_that_takes_nothing_is_said(scripted):
    path = scripted(control.saying({"ok": True, "level": "info"}))
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = subprocess.run([control.BINARY, "-s", path, "log"], stdout=full, text=True,
                             stderr=subprocess.PIPE, timeout=control.SECONDS, check=False)
    assert ran.returncode == 3 and "No space left" in ran.stderr
    closed = subprocess.run(["/bin/sh", "-c", f"exec '{control.BINARY}' -s '{path}' log >&-"],
                            capture_output=True, timeout=control.SECONDS, check=False)
    assert closed.returncode == 0 and scripted.running[0].requests == 2 * [{"verb": "log"}]


def test_a_socket_that_nobody_listens_at(tmp_path, scripted):
    stale = tmp_path / "stale"
    control.Scripted(stale, None).stop()
    for path in (tmp_path / "none", stale, tmp_path / "none" / "below", stale / "below"):
        assert control.refused(path, "status", status=3) == (
            f"no leat listens at {path}: set control.socket in its configuration and name the "
            "socket with -s")
    file = tmp_path / "file"
    file.write_text("")
    assert str(file) in control.refused(file, "status", status=3)


def test_permission_denied_says_whose_it_is():
    """To root nothing is denied, so that it is somebody else's leatctl then."""
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o711)
        path = f"{directory}/leat.sock"
        program = shutil.copy(control.BINARY, directory)  # others may not reach the original
        listener = control.Scripted(path, None)
        os.chmod(path, 0o600 if other else 0)
        ran = subprocess.run([program, "-s", path, "log"], capture_output=True, text=True,
                             timeout=control.SECONDS, check=False, **other)
        listener.stop()
    assert ran.returncode == 3, ran
    assert "permission denied: the socket is its owner's only" in ran.stderr


# What some reader of YAML takes for a number, a date or a time.
NUMBERS = ["0x10", "0x1F", "0xabcdef", "0b1", "0o7", "1_000", "1e3", "1.5E+3", ".inf", ".NaN", "+1",
           "-1", "2026-11-30", "2026-11-30T12:03:04Z", "12:30:45", "1.", "12ab", "1"]


def test_config_is_yaml(scripted):
    config = {"workers": 2, "loopback_users": [], "vhosts": {"null": {"farm": "a b"}, "~": {},
              "12": {"x": True}, "*": {}, "a: b": {}, "\x1b\n": {}, "Ünï": {}, "'q\"": {}},
              "listeners": [{"address": "amqp://[::1]:5672"}, {"address": "amqps://0.0.0.0:1"}],
              "timeouts": {"tls": "5s"}, "users": ["guest", "-x", "", "on", *NUMBERS],
              "limits": ["64KiB", "1500ms", "120s", "1GiB"]}
    text = control.done(scripted(control.saying({"ok": True, "config": config})), "config", "show")
    assert "  tls: 5s\n" in text and "loopback_users: []\n" in text and "workers: 2\n" in text
    assert '- address: amqps://0.0.0.0:1\n' in text
    for quoted in ('"null"', '"~"', '"12"', '"*"', '"a: b"', '"\\e\\n"', '"-x"', '""', '"on"',
                   *(f'"{one}"' for one in NUMBERS)):
        assert quoted in text, text
    assert "limits: [64KiB, 1500ms, 120s, 1GiB]\n" in text


def test_a_large_answer(scripted):
    listed = [{**SESSION, "id": number} for number in range(50000, 0, -1)]
    path = scripted(control.saying({"ok": True, "sessions": listed}))
    lines = control.run(path, "sessions", seconds=100).stdout.splitlines()
    assert lines[-1] == "50000 sessions" and lines[1].startswith("    1 ")
