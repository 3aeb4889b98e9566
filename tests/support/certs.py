# SPDX-License-Identifier: Apache-2.0
"""Certificates made on the spot with the openssl command line, for loopback only."""
import pathlib
import ssl
import subprocess

GOOD_NAMES = "DNS:localhost,IP:127.0.0.1"
OTHER_NAMES = "DNS:elsewhere.example"
LONG_AGO = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"]


def openssl(*args):
    """Runs openssl with ARGS, which must succeed."""
    done = subprocess.run(["openssl", *map(str, args)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]} failed: {done.stderr}")


class Certs:
    """Files below DIRECTORY:
    `ca`, `other_ca`          two authorities
    `cert`, `key`             good for 127.0.0.1 and localhost, signed by `ca`; an ECDSA P-256 key
    `rsa_cert`, `rsa_key`     the same with RSA-2048
    `expired_cert`, `misnamed_cert`   with `key`: too old; for another name
    """

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.ca = self._authority("ca")
        self.other_ca = self._authority("other_ca")
        self.key = self._key("key.pem", "EC", "ec_paramgen_curve:P-256")
        self.rsa_key = self._key("rsa_key.pem", "RSA", "rsa_keygen_bits:2048")
        self.cert = self._certificate("cert", self.key, GOOD_NAMES)
        self.rsa_cert = self._certificate("rsa_cert", self.rsa_key, GOOD_NAMES)
        self.misnamed_cert = self._certificate("misnamed_cert", self.key, OTHER_NAMES)
        self.expired_cert = self._certificate("expired_cert", self.key, GOOD_NAMES, LONG_AGO)

    def client_context(self, ca=None):
        """A context that verifies the peer and its name as an application would."""
        context = ssl.create_default_context(cafile=str(ca or self.ca))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    def server_context(self, cert=None, key=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert or self.cert, key or self.key)
        return context

    def _key(self, name, algorithm, option):
        path = self.dir / name
        openssl("genpkey", "-algorithm", algorithm, "-pkeyopt", option, "-out", path)
        path.chmod(0o600)
        return path

    def _authority(self, name):
        key = self._key(f"{name}_key.pem", "EC", "ec_paramgen_curve:P-256")
        path = self.dir / f"{name}.pem"
        openssl("req", "-new", "-x509", "-key", key, "-days", 30, "-out", path, "-subj",
                 f"/CN=leat test authority {name}",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        return path

    def _certificate(self, name, key, names, dates=("-days", "30")):
        request, config = self.dir / f"{name}.csr", self.dir / f"{name}.conf"
        path, database = self.dir / f"{name}.pem", self.dir / f"{name}.index"
        database.write_text("")
        config.write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\nnew_certs_dir={self.dir}\n"
            "rand_serial=yes\ndefault_md=sha256\npolicy=any\nx509_extensions=leaf\n"
            "[any]\ncommonName=supplied\n"
            f"[leaf]\nsubjectAltName={names}\nbasicConstraints=critical,CA:FALSE\n"
            "extendedKeyUsage=serverAuth\nsubjectKeyIdentifier=hash\n"
            "authorityKeyIdentifier=keyid\n")
        openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        openssl("ca", "-batch", "-notext", "-config", config, "-cert", self.ca, "-keyfile",
                 self.dir / "ca_key.pem", "-in", request, "-out", path, *dates)
        return path
