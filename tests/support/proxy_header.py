# SPDX-License-Identifier: Apache-2.0
"""PROXY headers by hand (HAProxy's doc/proxy-protocol.txt)."""
import collections
import ipaddress
import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21
TCP4, TCP6, UNIX = 0x11, 0x21, 0x31
AUTHORITY, SSL = 0x02, 0x20
SSL_VERSION, SSL_CN, SSL_CIPHER = 0x21, 0x22, 0x23
UNKNOWN = b"PROXY UNKNOWN\r\n"
HEALTH_CHECK = SIGNATURE + bytes([LOCAL, 0, 0, 0])

# SSL is (flags, verify, {type: value}) or None.
Header = collections.namedtuple("Header", "source destination authority ssl")


def v1(source, destination=("192.0.2.1", 5671)):
    family = "TCP6" if ":" in source[0] else "TCP4"
    return (f"PROXY {family} {source[0]} {destination[0]} {source[1]} {destination[1]}\r\n"
            .encode())


def tlv(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


def v2(source, destination=("192.0.2.1", 5671), tlvs=b""):
    ends = [ipaddress.ip_address(end[0]).packed for end in (source, destination)]
    body = b"".join(ends) + struct.pack(">HH", source[1], destination[1]) + tlvs
    family = TCP6 if ":" in source[0] else TCP4
    return SIGNATURE + struct.pack(">BBH", PROXY, family, len(body)) + body


def _split(data):
    while data:
        kind, size = struct.unpack_from(">BH", data)
        yield kind, data[3:3 + size]
        data = data[3 + size:]


def take_v2(leg):
    """Reads a header of version 2 for TCP from LEG, without a byte of what follows."""
    head = leg.recv_exactly(16)
    assert head[:12] == SIGNATURE and head[12] == PROXY, head
    body = leg.recv_exactly(struct.unpack_from(">H", head, 14)[0])
    size = {TCP4: 4, TCP6: 16}[head[13]]
    family = socket.AF_INET if size == 4 else socket.AF_INET6
    ports = struct.unpack_from(">HH", body, 2 * size)
    ends = [(socket.inet_ntop(family, body[at:at + size]), port)
            for at, port in zip((0, size), ports)]
    tlvs = dict(_split(body[2 * size + 4:]))
    ssl = tlvs.get(SSL)
    if ssl is not None:
        ssl = *struct.unpack_from(">BI", ssl), dict(_split(ssl[5:]))
    return Header(*ends, tlvs.get(AUTHORITY), ssl)


def take_v1(leg):
    """Reads a line of version 1."""
    line = b""
    while not line.endswith(b"\r\n"):
        line += leg.recv_exactly(1)
    return line
