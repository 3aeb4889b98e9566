# SPDX-License-Identifier: Apache-2.0
"""What a client says of itself reaches the broker byte for byte, but for what leat adds to it."""
import struct

import pytest

import amqp_wire
from amqp_wire import Cursor, longstr, shortstr, start_ok_args

AUTHENTICATION = shortstr("authentication_failure_close") + b"t"


def field(name, kind, value):
    return shortstr(name) + kind + value


def capabilities(*fields):
    return field("capabilities", b"F", longstr(b"".join(fields)))


# One of every type that RabbitMQ and its clients know, and names and values that mean nothing.
ODD_FIELDS = [
    field("text", b"S", longstr(b"\xff\0\xfe \"quoted\"")),
    field("", b"S", longstr("")),
    field("text", b"S", longstr("the same name again")),
    field("t", b"t", b"\x02"), field("b", b"b", b"\xff"), field("B", b"B", b"\xff"),
    field("s", b"s", b"\x80\0"), field("u", b"u", b"\xff\xff"), field("I", b"I", b"\x80\0\0\0"),
    field("i", b"i", b"\xff" * 4), field("l", b"l", b"\x80" + bytes(7)),
    field("f", b"f", struct.pack(">f", 0.1)), field("d", b"d", struct.pack(">d", float("nan"))),
    field("D", b"D", b"\x02" + struct.pack(">i", -314)), field("T", b"T", bytes(8)),
    field("x", b"x", longstr(bytes(range(256)))), field("V", b"V", b""),
    field("A", b"A", longstr(b"I\0\0\0\x01" + b"F" + longstr(field("leat_inside", b"t", b"\x01")))),
    field("x" * 255, b"S", longstr("y" * 2000)),
    field("leat", b"S", longstr("not reserved")), field("LEAT_client", b"V", b""),
]


def leat_client(leat, client):
    tls = " TLS" if leat.find("listening")[0].fields["on"].startswith("amqps") else ""
    host, port = client.sock.getsockname()
    return field("leat_client", b"S", longstr(f"{host}:{port}{tls}"))


@pytest.fixture
def login(leat_of_both_kinds, run_broker):
    """login(properties, mechanism, response): what the broker gets for it (the properties,
    and what follows them), and the field that leat adds."""
    def run(properties, mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US"):
        broker = run_broker(amqp_wire.recording())
        leat, client = leat_of_both_kinds(broker)
        client = client()
        client.greet()
        client.send_method("connection.start-ok",
                           start_ok_args(properties, mechanism, response, locale))
        client.tune_ok()
        client.open()
        added = leat_client(leat, client)
        client.close()
        cursor = Cursor(broker.sessions[0].start_ok)
        received = cursor.longstr()
        return received, cursor.data[cursor.at:], added, leat
    return run


@pytest.fixture(autouse=True)
def any_properties(monkeypatch):
    """The scripted broker is not to look into the properties: some have types it can't read."""
    monkeypatch.setattr(Cursor, "table", lambda cursor: cursor.longstr())


def test_properties_stay_as_they_are(login):
    properties = b"".join(ODD_FIELDS)
    received, rest, added, _ = login(properties)
    assert received == properties + capabilities(AUTHENTICATION + b"\x01") + added
    assert rest == shortstr("PLAIN") + longstr(b"\0guest\0guest") + shortstr("en_US")


def test_no_properties_at_all(login):
    received, _, added, _ = login(b"")
    assert received == capabilities(AUTHENTICATION + b"\x01") + added


def test_reserved_properties_of_a_client_are_removed(login):
    reserved = [field(name, b"S", longstr("forged"))
                for name in ("leat_client", "leat_", "leat_other", "amqpprox_client", "amqpprox_")]
    reserved.append(field("leat_client", b"F", longstr(field("deep", b"V", b""))))
    kept = ODD_FIELDS[:len(reserved) + 1]
    mixed = kept[0] + b"".join(bad + good for bad, good in zip(reserved, kept[1:]))
    received, _, added, _ = login(mixed)
    assert received == b"".join(kept) + capabilities(AUTHENTICATION + b"\x01") + added


@pytest.mark.parametrize("given, passed_on", [
    ([field("a", b"t", b"\0"), field("b", b"V", b"")],
     [field("a", b"t", b"\0"), field("b", b"V", b""), AUTHENTICATION + b"\x01"]),
    ([AUTHENTICATION + b"\0", field("a", b"t", b"\x01")],
     [AUTHENTICATION + b"\x01", field("a", b"t", b"\x01")]),
    ([AUTHENTICATION + b"\x01"], [AUTHENTICATION + b"\x01"]),
], ids=["lacking", "false", "true"])
def test_one_capability_is_set_and_all_others_stay(login, given, passed_on):
    before, after = ODD_FIELDS[0], ODD_FIELDS[3]
    received, _, added, _ = login(before + capabilities(*given) + after)
    assert received == before + capabilities(*passed_on) + after + added


@pytest.mark.parametrize("user, password", [
    (b"guest", b""), (b" guest ", b" pass word "), ("us\u00e9r".encode(), "\u5bc6\u7801".encode()),
    (b"\xff\xfe", bytes(range(1, 256))), (b'u"\\', b"%00\r\n'"), (b"u" * 255, b"p" * 4000),
])
def test_R14_odd_credentials_stay_as_they_are(login, user, password):
    """A broker was shown an empty user, or another password than the client's."""
    response = b"\0" + user + b"\0" + password
    _, rest, _, leat = login(b"", response=response, locale="de_\u00c4".encode())
    assert rest == shortstr("PLAIN") + longstr(response) + shortstr("de_\u00c4")
    line = leat.wait("closed")
    assert "\n" not in line.text and line.level, "the log line is torn"


@pytest.mark.parametrize("authorization", [b"", b"somebody else"])
def test_the_authorization_name_of_plain_is_kept(login, authorization):
    response = authorization + b"\0guest\0guest"
    _, rest, _, _ = login(b"", response=response)
    assert rest == shortstr("PLAIN") + longstr(response) + shortstr("en_US")


def test_R13_amqplain_stays_as_it_is(login):
    """A client that logs in with AMQPLAIN was not understood."""
    response = (field("LOGIN", b"S", longstr(b"us\xffer")) + field("extra", b"V", b"")
                + field("PASSWORD", b"S", longstr(b"\0pass\xfe")))
    _, rest, _, leat = login(b"", b"AMQPLAIN", response)
    assert rest == shortstr("AMQPLAIN") + longstr(response) + shortstr("en_US")
    assert leat.wait("opened").fields["user"].startswith("us")


@pytest.mark.parametrize("vhost", ["", "/", "a/b%2f \"c\"", "\u00fcml\u00e4ut\n", "v" * 255])
def test_a_vhost_stays_as_it_is(plain_leat, run_broker, vhost):
    broker = run_broker(amqp_wire.serving())
    leat = plain_leat(broker)
    amqp_wire.Client(leat.port).connect(vhost=vhost).close_politely()
    assert broker.sessions[0].vhost == vhost
    assert leat.wait("closed").level == "info"


@pytest.mark.parametrize("password, answer", [(b"secret-of-app", "opened"), (b"wrong", 403)])
def test_R13_amqplain_with_rabbitmq(plain_leat, rabbit, password, answer):
    """AMQPLAIN was not even offered."""
    leat = plain_leat(rabbit)
    client = amqp_wire.Client(leat.port)
    assert b"AMQPLAIN" in client.greet().payload
    response = (field("LOGIN", b"S", longstr("app")) + field("PASSWORD", b"S", longstr(password)))
    properties = capabilities(AUTHENTICATION + b"\x01")
    client.send_method("connection.start-ok", start_ok_args(properties, "AMQPLAIN", response))
    client.tune_ok()
    client.send(amqp_wire.open_frame("other"))
    said = client.recv_frame()
    if answer == "opened":
        assert said.name == "connection.open-ok"
        client.close_politely()
        return
    code, text = amqp_wire.read_close(said)
    assert code == answer
    assert text.startswith("ACCESS_REFUSED - Login was refused using authentication mechanism "
                           "AMQPLAIN")
    client.close()
    assert password.decode() not in leat.text()
