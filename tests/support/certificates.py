"""A certificate authority for tests, and certificates signed by it."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """Key and certificate of the CA."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def signed(self, address: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        """Return a key and a certificate for an IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = _builder("broker", self.certificate.subject, key).add_extension(names, False)
        return key, made.sign(self.key, hashes.SHA256())

    def write(self, folder: Path, address: str = "127.0.0.1") -> None:
        """Write `ca.pem` and `node.pem`, which holds a key and its certificate."""
        key, certificate = self.signed(address)
        (folder / "ca.pem").write_bytes(self.pem)
        (folder / "node.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )


def authority() -> Authority:
    """Create a CA that is valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    built = _builder("tests", name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return Authority(key, built.sign(key, hashes.SHA256()))


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
