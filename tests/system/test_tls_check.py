# SPDX-License-Identifier: Apache-2.0
"""`leat check` on TLS: what is wrong is told with the file, the line and the key."""
import pytest

import leat as leats
from authority import LONG_AGO, LONG_AGO_CRL, Authority, encrypted


@pytest.fixture(scope="module")
def gone(tmp_path_factory):
    """An authority that has expired."""
    return Authority(tmp_path_factory.mktemp("gone"), "gone", LONG_AGO)


def listener(pair, *more):
    """The first key stands on line 2, MORE from line 5 on."""
    return "".join(f"{line}\n" for line in (
        "listeners:", "  - address: amqps://127.0.0.1:0", f"    cert: {pair.cert}",
        f"    key: {pair.key}", *(f"    {one}" for one in more)))


def backend(*more):
    """MORE stands from line 2 on, if this comes first."""
    return "".join(f"{line}\n" for line in (
        "backends:", "  broker:", *(f"    {one}" for one in more),
        "    address: amqps://127.0.0.1:1"))


PLAIN_LISTENER = "listeners: [{ address: 'amqp://127.0.0.1:0' }]\n"
PLAIN_BACKEND = "backends: { broker: { address: 'amqp://127.0.0.1:1' } }\n"


@pytest.fixture
def check(tmp_path):
    def run(text, status=2):
        """Runs leat check on TEXT, which must end with STATUS; returns what it says without the
        name of the file, which must come first if something is wrong."""
        file = tmp_path / "leat.yaml"
        file.write_text(text)
        done = leats.run("check", "-c", file)
        assert done.returncode == status, done
        if status == 0:
            assert done.stderr == ""
            return done.stdout
        words, _, rest = done.stderr.partition("leat.yaml:")
        assert words.startswith("leat: ") and done.stderr.count("\n") == 1, done
        return rest.rstrip("\n")

    return run


def test_what_is_right_is_told_with_its_dates(check, world):
    said = check(listener(world.server, f"client_ca: {world.clients.cert}",
                          f"crl: {world.clients_crl}")
                 + backend(f"ca: {world.servers.cert}", f"cert: {world.alice.cert}",
                           f"key: {world.alice.key}"), status=0)
    assert f"listeners[0].cert: {world.server.cert} is valid until 20" in said
    assert f"backends.broker.cert: {world.alice.cert} is valid until 20" in said
    assert said.endswith("leat.yaml: ok: listeners=1 backends=1 farms=1 routes=1\n")


def test_an_expired_certificate(check, world):
    said = check(listener(world.stale) + PLAIN_BACKEND)
    assert said == f"3: listeners[0].cert: {world.stale.cert} has expired on 2020-02-01 00:00 UTC"
    said = check(PLAIN_LISTENER + backend(f"key: {world.stale.key}", f"cert: {world.stale.cert}",
                                          f"ca: {world.servers.cert}"))
    assert said.startswith("5: backends.broker.cert: ") and "has expired on" in said


def test_an_expired_further_certificate(check, world):
    said = check(listener(world.server, "certificates: [extra]") + "certificates:\n  extra:\n"
                 f"    key: {world.stale.key}\n    cert: {world.stale.cert}\n" + PLAIN_BACKEND)
    assert said.startswith("9: certificates.extra.cert: ") and "has expired on" in said


def test_an_expired_authority(check, world, gone):
    said = check(listener(world.server, f"client_ca: {gone.cert}") + PLAIN_BACKEND)
    assert said == "5: listeners[0].client_ca: all authorities in it have expired"
    said = check(PLAIN_LISTENER + backend("name: localhost", f"ca: {gone.cert}"))
    assert said == "5: backends.broker.ca: all authorities in it have expired"


def test_a_wrong_passphrase(check, world, tmp_path):
    pair = world.server._replace(key=encrypted(world.server.key, tmp_path / "key.pem"))
    (tmp_path / "word.txt").write_text("wrong\n")
    said = check(listener(pair, "key_passphrase: word.txt") + PLAIN_BACKEND)
    assert said.startswith("4: listeners[0].key: ") and "does not open it" in said


@pytest.mark.parametrize("setting, what", [
    ("ciphers: ECDHE-ECDSA-AES128-GCM-SHA265", "cipher"),
    ("ciphersuites: TLS_AES_128_GCM_SHA265", "cipher suite"),
    ("groups: X25519:P-257", "group")])
def test_a_word_that_openssl_does_not_know(check, world, setting, what):
    key, value = setting.split(": ")
    told = f'"{value.rsplit(":", 1)[-1]}" is no {what}'
    said = check(listener(world.server, "min_version: TLSv1.2", setting) + PLAIN_BACKEND)
    assert said.startswith(f"6: listeners[0].{key}: ") and told in said
    said = check(PLAIN_LISTENER + backend(f"ca: {world.servers.cert}", setting))
    assert said.startswith(f"5: backends.broker.{key}: ") and told in said


def test_a_revocation_list_of_another_authority(check, world):
    crl = f"crl: {world.strangers.crl()}"
    why = "it has no revocation list of an authority that is trusted"
    said = check(listener(world.server, f"client_ca: {world.clients.cert}", crl) + PLAIN_BACKEND)
    assert said.startswith("6: listeners[0].crl: CRL file ") and why in said
    said = check(PLAIN_LISTENER + backend(crl, f"ca: {world.servers.cert}"))
    assert said.startswith("4: backends.broker.crl: CRL file ") and why in said


def test_a_revocation_list_that_is_out_of_date(check, world):
    old = world.clients.crl("old", LONG_AGO_CRL)
    said = check(listener(world.server, f"crl: {old}", f"client_ca: {world.clients.cert}")
                 + PLAIN_BACKEND)
    assert said == ("5: listeners[0].crl: a revocation list is out of date since "
                    "2020-02-01 00:00 UTC")


@pytest.mark.parametrize("key", ["client_ca", "crl"])
def test_what_is_no_pem(check, world, tmp_path, key):
    (tmp_path / "noise.pem").write_text("noise\n")
    more = [f"client_ca: {world.clients.cert}"] if key == "crl" else []
    said = check(listener(world.server, *more, f"{key}: noise.pem") + PLAIN_BACKEND)
    assert said.startswith(f"{5 + len(more)}: listeners[0].{key}: ") and "noise.pem" in said
