# SPDX-License-Identifier: Apache-2.0
"""Starting and ending programs that the tests and the demo need.

A program gets its own session, so that Ctrl-C reaches only us and we decide in which order things
end; and it is told to end when we die, so that nothing is left behind.
"""
import ctypes
import os
import resource
import signal
import socket
import subprocess

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def _end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def start(argv, descriptors=None, **options):
    """Starts ARGV from the main thread (its death would end the program), with at most DESCRIPTORS
    open files if that is given. Returns the Popen."""
    def prepare():
        _end_with_parent()
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(argv, start_new_session=True, preexec_fn=prepare, **options)


def stop(process, seconds=20):
    """Ends PROCESS by its id, politely first. Returns its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def free_ports(count):
    """COUNT different ports that nobody listens on at this moment."""
    holders = [socket.socket() for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [holder.getsockname()[1] for holder in holders]
    finally:
        for holder in holders:
            holder.close()


def environment(**settings):
    """This process's environment without RabbitMQ's and Erlang's variables, and with SETTINGS."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("RABBITMQ_", "ERL_"))}
    return {**kept, **settings}
