# SPDX-License-Identifier: Apache-2.0
"""The completion of leatctl, run by a real bash as it would when Tab is pressed."""
import os
import pathlib
import shlex
import subprocess

import pytest

import amqp_wire
import control

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "packaging/leatctl.bash"
VERBS = {"status", "sessions", "session", "backends", "tls", "reload", "drain", "log", "config",
         "help"}


def complete(*words, socket="/nonexistent"):
    """What is offered for the last of WORDS, which follow the program's name."""
    line = " ".join(shlex.quote(word) for word in ("leatctl", *words))
    script = (f"PATH={shlex.quote(str(pathlib.Path(control.BINARY).parent))}:$PATH\n"
              f"source {shlex.quote(str(SCRIPT))}\ncomplete -p leatctl >/dev/null || exit 9\n"
              f"COMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
              '_leatctl leatctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"\n'
              'for one in "${COMPREPLY[@]}"; do printf "%s\\n" "$one"; done\n')
    ran = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                         timeout=control.SECONDS, check=False,
                         env={**os.environ, "LEAT_SOCKET": str(socket)})
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout.splitlines()


@pytest.mark.parametrize("words, offered", [
    ([""], VERBS), (["s"], {"status", "sessions", "session"}), (["x"], set()),
    (["--json", "dr"], {"drain"}), (["-s", "/x", "dr"], {"drain"}),
    (["session", "17", ""], {"show", "close", "kill", "trace"}),
    (["session", "17", "c"], {"close"}), (["session", "17", "close", ""], set()),
    (["log", ""], {"error", "warn", "info", "debug", "trace"}), (["log", "d"], {"debug"}),
    (["config", ""], {"show"}), (["help", ""], VERBS - {"help"}), (["status", ""], set()),
    (["-"], {"--json", "--socket", "--help", "--version"}),
    (["sessions", "--v"], {"--version", "--vhost"}), (["status", "--vh"], set()),
    (["sessions", "--state", ""], {"proxy", "tls", "handshake", "search", "open", "closing", "ending"}),
    (["sessions", "--state", "=", "o"], {"open"}), (["sessions", "--state", "="],
     {"proxy", "tls", "handshake", "search", "open", "closing", "ending"}),
    (["sessions", "--client", ""], set()),
    # Nothing answers there, and nothing is said about it.
    (["session", ""], set()), (["sessions", "--vhost", ""], set()),
    (["sessions", "--backend", ""], set()),
])
def test_what_needs_no_leat(words, offered):
    found = complete(*words)
    assert set(found) == offered and len(found) == len(offered)


def test_the_socket_is_a_file(tmp_path):
    (tmp_path / "leat.sock").touch()
    assert complete("-s", f"{tmp_path}/le") == [f"{tmp_path}/leat.sock"]


def test_leat_is_asked(run_file, run_broker, tmp_path):
    broker = run_broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    path = tmp_path / "leat.sock"
    leat = run_file("listeners: [{ address: amqp://127.0.0.1:0 }]\nloopback_users: []\nbackends:\n"
                    f"  rabbit one: {{ address: 'amqp://127.0.0.1:{broker.port}' }}\n"
                    f"  rabbit2: {{ address: 'amqp://127.0.0.1:{broker.port}' }}\n"
                    f"control: {{ socket: {path} }}\n")
    vhosts = ["/", "orders", "all the orders", "$(touch pwned)`touch pwned`;'"]
    opened = []
    for vhost in vhosts:
        opened.append(amqp_wire.Client(leat.port).ask(user="ann", vhost=vhost))
        opened[-1].expect("connection.open-ok")
    ids = {str(one["id"]) for one in control.sessions(path)}

    def words(found):
        return {shlex.split(one)[0] for one in found}

    assert set(complete("session", "", socket=path)) == ids and len(ids) == 4
    assert complete("sessions", "--user", "a", socket=path) == ["ann"]
    assert words(complete("sessions", "--vhost", "", socket=path)) == set(vhosts)
    assert complete("sessions", "--vhost", "all\\ t", socket=path) == ["all\\ the\\ orders"]
    assert complete("sessions", "--vhost", "=", "or", socket=path) == ["orders"]
    assert words(complete("sessions", "--backend", "", socket=path)) == {"rabbit one", "rabbit2"}
    assert complete("-s", str(path), "sessions", "--vhost", "or") == ["orders"]
    assert not pathlib.Path("pwned").exists()
    for client in opened:
        client.close()
