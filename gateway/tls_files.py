"""TLS as configured: certificates and keys are read here, once, and what is wrong with them is said in a sentence.

What TLS means for a request is not known here.
"""

import ssl
from pathlib import Path

from policies.settings_edge import ListenTls, UpstreamTls
from policies.settings_store import StoreTls


class TlsError(ValueError):
    """A file that can't be read or used; `args[0]` names it."""


def server_context(tls: ListenTls) -> ssl.SSLContext:
    """For the listener: TLS 1.2 and later. Raises `TlsError`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, tls.cert, tls.key)
    if tls.client_ca is not None:
        _load_ca(context, tls.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: UpstreamTls | StoreTls) -> ssl.SSLContext:
    """For an upstream or the store: its name and its chain are always verified. Raises `TlsError`."""
    context = ssl.create_default_context() if tls.ca is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca is not None:
        _load_ca(context, tls.ca)
    if tls.client_cert is not None:
        _load_pair(context, tls.client_cert, tls.client_key)
    return context


def _load_pair(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    for name in (cert, key):
        if name is not None:
            _read(name)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError:
        raise TlsError(f"{cert} and {key or 'its key'} are no certificate and its key (PEM, no passphrase)") from None


def _load_ca(context: ssl.SSLContext, name: str) -> None:
    _read(name)
    try:
        context.load_verify_locations(name)
    except ssl.SSLError:
        raise TlsError(f"{name} holds no certificates (PEM)") from None


def _read(name: str) -> None:
    try:
        Path(name).read_bytes()
    except OSError as error:
        raise TlsError(f"{name} can't be read: {error.strerror}") from None


def _no_password() -> str:
    return ""
