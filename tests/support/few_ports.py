# SPDX-License-Identifier: Apache-2.0
"""Opens sessions through a leat whose machine has few local ports left.

A program for `unshare --user --map-root-user --net`: a network of its own, with loopback only,
where the number of ports can be set without being root. Prints, as JSON, the name of the method
that answered each Open, and leat's log.
"""
import fcntl
import json
import pathlib
import socket
import struct

import amqp_wire
import flow
import leat as leats

PORT_RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
PORTS = 4
CLIENTS_FROM = 20000  # ports that are asked for by number are not taken from that range
SIOCSIFFLAGS = 0x8914
UP_LOOPBACK_RUNNING = 1 | 8 | 64


def bring_loopback_up():
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", UP_LOOPBACK_RUNNING))


def use_up_ports(leat):
    """Asks for one session more than there are ports. Returns the answers."""
    clients, answers = [], []
    for number in range(PORTS + 1):
        clients.append(amqp_wire.Client(leat.port, source_port=CLIENTS_FROM + number).ask())
        answers.append(clients[-1].recv_frame().name)
    clients[0].close_politely()
    flow.wait_status(leat, lambda now: now["connections"] == PORTS)
    for client in clients[1:]:
        client.close()
    return answers


def main():
    bring_loopback_up()
    broker = amqp_wire.Broker(amqp_wire.serving(amqp_wire.NO_HEARTBEAT))
    leat = leats.Leat("amqp://127.0.0.1:0", f"amqp://127.0.0.1:{broker.port}")
    PORT_RANGE.write_text(f"50000 {50000 + PORTS - 1}", encoding="ascii")
    answers = use_up_ports(leat)
    leat.stop()
    broker.stop()
    print(json.dumps({"answers": answers, "log": leat.text()}))


if __name__ == "__main__":
    main()
