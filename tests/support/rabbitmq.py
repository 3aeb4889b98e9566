# SPDX-License-Identifier: Apache-2.0
"""A real RabbitMQ node on loopback, with directories, ports and an epmd of its own.

It is started from where Debian's package has it, by whoever runs this (root or not), and touches
nothing of a RabbitMQ that the machine may run for itself.
"""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import process

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
MEMORY = "1GB"  # where the alarm is that stops publishers
USERS = {"guest": "guest", "app": "secret-of-app"}
VHOSTS = ["/", "other"]
START_SECONDS = 120
PROTOCOL_HEADER = b"AMQP\0\0\x09\x01"
PROXY_HEADER = b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n"


def _password_hash(password):
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _definitions():
    users = [{"name": name, "password_hash": _password_hash(password), "tags": [],
              "hashing_algorithm": "rabbit_password_hashing_sha256"}
             for name, password in USERS.items()]
    permissions = [{"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
                   for user in USERS for vhost in VHOSTS]
    return {"users": users, "vhosts": [{"name": vhost} for vhost in VHOSTS],
            "permissions": permissions}


def _accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class RabbitMQ:
    """One node. `port` and, with CERTS, `tls_port` are ready when the constructor returns.

    HEARTBEAT is what the node offers, 0 for none. CERTS is a certs.Certs: its good certificate
    is served on `tls_port`. EXPECTS_PROXY makes it want a PROXY header first. ON_WAIT, if given, is called a few times a second while it starts.
    """

    def __init__(self, heartbeat=60, certs=None, on_wait=None, expects_proxy=False):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="leat-rabbitmq-"))
        self.heartbeat = heartbeat
        self.certs = certs
        self.expects_proxy = expects_proxy
        self.port, self.tls_port, self._epmd_port, self._dist_port = process.free_ports(4)
        self.log = self.dir / "rabbit.log"
        self._epmd = self._server = None
        try:
            self._write_files()
            self._start()
            self._await_ready(on_wait)
        except BaseException:
            self.stop()
            raise

    def _write_files(self):
        conf = [
            f"listeners.tcp.1 = 127.0.0.1:{self.port}",
            f"heartbeat = {self.heartbeat}",
            f"proxy_protocol = {str(self.expects_proxy).lower()}",
            f"load_definitions = {self.dir}/definitions.json",
            "log.file.level = info",
            f"vm_memory_high_watermark.absolute = {MEMORY}",
            "disk_free_limit.absolute = 50MB",
        ]
        if self.certs:
            conf += [
                f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {self.certs.ca}",
                f"ssl_options.certfile = {self.certs.cert}",
                f"ssl_options.keyfile = {self.certs.key}",
                "ssl_options.verify = verify_none",
                "ssl_options.fail_if_no_peer_cert = false",
            ]
        (self.dir / "rabbitmq.conf").write_text("\n".join(conf) + "\n")
        (self.dir / "advanced.config").write_text("[].\n")
        (self.dir / "enabled_plugins").write_text("[].\n")
        (self.dir / "env.conf").write_text("")
        (self.dir / "definitions.json").write_text(json.dumps(_definitions()))

    def _environment(self):
        return process.environment(
            HOME=str(self.dir),
            ERL_EPMD_PORT=str(self._epmd_port),
            ERL_EPMD_ADDRESS="127.0.0.1",
            RABBITMQ_NODENAME=f"leat-{self.port}@localhost",
            RABBITMQ_DIST_PORT=str(self._dist_port),
            RABBITMQ_CONFIG_FILE=f"{self.dir}/rabbitmq.conf",
            RABBITMQ_ADVANCED_CONFIG_FILE=f"{self.dir}/advanced.config",
            RABBITMQ_CONF_ENV_FILE=f"{self.dir}/env.conf",
            RABBITMQ_ENABLED_PLUGINS_FILE=f"{self.dir}/enabled_plugins",
            RABBITMQ_MNESIA_BASE=f"{self.dir}/mnesia",
            RABBITMQ_GENERATED_CONFIG_DIR=f"{self.dir}/generated",
            RABBITMQ_LOG_BASE=str(self.dir),
            RABBITMQ_LOGS=str(self.log),
            RABBITMQ_PID_FILE=f"{self.dir}/pid",
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}",
            # Makes the start script become the node instead of watching over it: one process,
            # whose id we know.
            RUNNING_UNDER_SYSTEMD="true",
        )

    def _start(self):
        environment = self._environment()
        with open(self.dir / "console.log", "wb") as console:
            self._epmd = process.start(
                ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"],
                env=environment, stdout=console, stderr=console)
            self._await(lambda: _accepts(self._epmd_port), self._epmd, "epmd", 20)
        self._start_node()

    def _start_node(self):
        with open(self.dir / "console.log", "ab") as console:
            self._server = process.start([SERVER], env=self._environment(), cwd=self.dir,
                                         stdout=console, stderr=console)

    def _await(self, ready, program, name, seconds, on_wait=None):
        deadline = time.monotonic() + seconds
        while not ready():
            if on_wait:
                on_wait()
            try:
                program.wait(0.1)
                raise RuntimeError(f"{name} ended by itself: {self._last_words()}")
            except subprocess.TimeoutExpired:
                pass
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} was not ready in {seconds} s: {self._last_words()}")

    def _last_words(self):
        texts = [path.read_text(errors="replace")[-2000:]
                 for path in (self.dir / "console.log", self.log) if path.exists()]
        return "\n".join(texts)

    def _speaks(self):
        ports = [self.port, self.tls_port] if self.certs else [self.port]
        if not all(_accepts(port) for port in ports):
            return False
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                if self.expects_proxy:
                    probe.sendall(PROXY_HEADER)
                probe.sendall(PROTOCOL_HEADER)
                return probe.recv(1) == b"\x01"
        except OSError:
            return False

    def _await_ready(self, on_wait):
        self._await(self._speaks, self._server, "RabbitMQ", START_SECONDS, on_wait)

    def log_text(self):
        return self.log.read_text(errors="replace")

    def await_log(self, text, seconds=20):
        """Waits until the node's log has TEXT; returns the whole log."""
        self._await(lambda: text in self.log_text(), self._server, f"the log line {text!r}",
                    seconds)
        return self.log_text()

    def control(self, *command):
        """Runs a command of rabbitmqctl's; returns what it printed."""
        return subprocess.run([CONTROL, *command], env=self._environment(), cwd=self.dir,
                              check=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60, text=True).stdout

    def kill(self):
        """Ends the node as a crash would."""
        self._server.kill()
        self._server.wait()

    def stop_node(self):
        """Ends the node as an operator would."""
        process.stop(self._server, 30)

    def start_again(self):
        """Starts a node that was ended, on its ports and with its data; nothing if it runs."""
        if self._server.poll() is not None:
            self._start_node()
            self._await_ready(None)

    def stop(self):
        """Ends the node and its epmd by their ids and removes the directory."""
        for program in (self._server, self._epmd):
            if program:
                process.stop(program, 30)
        shutil.rmtree(self.dir, ignore_errors=True)
