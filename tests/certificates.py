"""Certificates for tests: an authority's own, or signed by one."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def issue(
    place: Path,
    name: str,
    signer: Signed | None,
    *,
    authority: bool = False,
    names: list[str] | None = None,
    address: str | None = None,
) -> Signed:
    """Writes `NAME.pem` and `NAME.key` into `place`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = [x509.DNSName(each) for each in names or ["client.example"]]
    if address is not None:
        alternatives.append(x509.IPAddress(ipaddress.ip_address(address)))
    issuer, sign_with = (signer[0].subject, signer[1]) if signer is not None else (subject, key)
    cert = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(sign_with, hashes.SHA256())
    )
    (place / f"{name}.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (place / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return cert, key
