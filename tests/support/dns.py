# SPDX-License-Identifier: Apache-2.0
"""A DNS server on loopback, over UDP, whose answers a test can change at any time."""
import contextlib
import ipaddress
import socket
import struct
import threading

A, AAAA = 1, 28
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
SILENT = object()
RECURSION_AVAILABLE = 0x8180


class Dns:
    """Answers on `address`. `names` has a list of addresses of each name; a name that is not there
    does not exist, one with SILENT gets no answer, one with SERVFAIL that. `asked` are all
    (name, type) that came."""

    def __init__(self, ttl=0, **names):
        self.names = names
        self.ttl = ttl
        self.asked = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._socket.getsockname()[1]
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def count(self, name):
        """How often the addresses of NAME were asked for."""
        return self.asked.count((name, A))

    def _serve(self):
        while not self._stopping:
            question, sender = self._socket.recvfrom(512)
            with contextlib.suppress(IndexError, struct.error):
                answer = self._answer(question)
                if answer:
                    self._socket.sendto(answer, sender)

    def _answer(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind, = struct.unpack_from(">H", question, at + 1)
        name = ".".join(labels).lower()
        self.asked.append((name, kind))
        addresses = self.names.get(name, NXDOMAIN)
        if addresses is SILENT:
            return None
        code = addresses if isinstance(addresses, int) else NOERROR
        found = [] if code else [ipaddress.ip_address(one) for one in addresses]
        found = [one.packed for one in found if one.version == (4 if kind == A else 6)]
        head = question[:2] + struct.pack(">HHHHH", RECURSION_AVAILABLE | code, 1, len(found), 0, 0)
        records = [struct.pack(">HHHIH", 0xc00c, kind, 1, self.ttl, len(one)) + one
                   for one in found]
        return head + question[12:at + 5] + b"".join(records)

    def stop(self):
        self._stopping = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join(5)
        self._socket.close()
