# SPDX-License-Identifier: Apache-2.0
"""Certificate authorities made on the spot, with what an operator does with one: issue, revoke,
publish a revocation list."""
import collections
import pathlib
import ssl

from certs import LONG_AGO, openssl

Pair = collections.namedtuple("Pair", "cert key")
VALID = ("-days", "30")
LONG_AGO_CRL = ("-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")
PASSPHRASE = "correct horse"


class Authority:
    """An authority called NAME, whose files are in a directory of that name below DIRECTORY. `cert`
    is its certificate, valid for DATES."""

    def __init__(self, directory, name, dates=VALID):
        self.name, self.dir = name, pathlib.Path(directory) / name
        self.dir.mkdir()
        self.key = self._new_key("own")
        self.cert = self.dir / "own.pem"
        (self.dir / "index").write_text("")
        (self.dir / "crlnumber").write_text("01\n")
        self._sign("own", f"/CN={name}", "basicConstraints=critical,CA:TRUE\n"
                   "keyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n", dates,
                   self.key, "-selfsign")

    def issue(self, name, names=("localhost",), dates=VALID, key=None):
        """A certificate with the subject CN=NAME for the DNS NAMES, good for either side. Returns
        its Pair; the key is a new one, or KEY."""
        key = key or self._new_key(name)
        alternatives = ",".join(f"DNS:{one}" for one in names) + ",IP:127.0.0.1"
        cert = self._sign(name, f"/CN={name}", f"subjectAltName={alternatives}\n"
                          "basicConstraints=critical,CA:FALSE\n"
                          "extendedKeyUsage=serverAuth,clientAuth\nsubjectKeyIdentifier=hash\n"
                          "authorityKeyIdentifier=keyid\n", dates, key, "-cert", self.cert)
        return Pair(cert, key)

    def issue_expired(self, name):
        return self.issue(name, dates=LONG_AGO)

    def revoke(self, pair):
        openssl("ca", "-config", self._config(""), "-cert", self.cert, "-keyfile", self.key,
                "-revoke", pair.cert)

    def crl(self, name="crl", dates=("-crldays", "30")):
        """A revocation list of DATES, in a file called NAME."""
        path = self.dir / f"{name}.pem"
        openssl("ca", "-config", self._config(""), "-cert", self.cert, "-keyfile", self.key,
                "-gencrl", "-out", path, *dates)
        return path

    def _new_key(self, name):
        path = self.dir / f"{name}_key.pem"
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
        path.chmod(0o600)
        return path

    def _config(self, extensions):
        config = self.dir / "conf"
        config.write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={self.dir}/index\nnew_certs_dir={self.dir}\n"
            f"crlnumber={self.dir}/crlnumber\nrand_serial=yes\ndefault_md=sha256\npolicy=any\n"
            "unique_subject=no\nx509_extensions=these\n[any]\ncommonName=supplied\n[these]\n"
            + extensions)
        return config

    def _sign(self, name, subject, extensions, dates, key, *signer):
        request, path = self.dir / f"{name}.csr", self.dir / f"{name}.pem"
        openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
        openssl("ca", "-batch", "-notext", "-config", self._config(extensions), "-in", request,
                "-out", path, "-keyfile", self.key, *dates, *signer)
        return path


def encrypted(key, path, passphrase=PASSPHRASE):
    """A copy of KEY at PATH that PASSPHRASE opens."""
    openssl("pkey", "-in", key, "-out", path, "-aes256", "-passout", f"pass:{passphrase}")
    return path


class World:
    """The authorities of the tests, below DIRECTORY: `servers` and `clients`, and `strangers`,
    which nobody has agreed to trust; what they have issued, and a client's contexts."""

    def __init__(self, directory):
        self.servers, self.clients, self.strangers = (
            Authority(directory, name) for name in ("servers", "clients", "strangers"))
        self.server = self.servers.issue("default")
        self.other_server = self.servers.issue("other")
        self.alice = self.clients.issue("alice")
        self.stale = self.clients.issue_expired("stale")
        self.banned = self.clients.issue("banned")
        self.stranger = self.strangers.issue("stranger")
        self.clients.revoke(self.banned)
        self.clients_crl = self.clients.crl()

    def context(self, pair=None, version=None):
        """What verifies a server, whatever it is called; it shows PAIR and speaks only VERSION if
        these are given."""
        context = ssl.create_default_context(cafile=str(self.servers.cert))
        context.check_hostname = False
        if pair:
            context.load_cert_chain(*pair)
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def broker_context(self, pair=None, client_ca=None):
        """A broker's, which shows PAIR and wants a certificate of CLIENT_CA if that is given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(pair or self.server))
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        return context


def subject(sock):
    """Whom the certificate names that the other end of SOCK has shown; None if it showed none."""
    shown = sock.getpeercert()
    return shown["subject"][0][0][1] if shown else None
