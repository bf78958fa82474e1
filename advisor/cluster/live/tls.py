"""TLS context from a Java client's key store and trust store.

The format is detected from the content: Java's default `ssl.keystore.type` is JKS but accepts
PKCS12 too. Python reads PEM and the library `cryptography` PKCS12. No maintained library reads
JKS; the error says how to convert it.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from typing import TYPE_CHECKING

from advisor.cluster.live.client_properties import MOST_BYTES, ClientProperties, Store
from advisor.errors import InputError, MissingExtraError
from advisor.files import read_input

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import (
        PKCS12Certificate,
        PKCS12KeyAndCertificates,
    )

_JKS = b"\xfe\xed\xfe\xed"
_PEM = b"-----BEGIN "
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(properties: ClientProperties) -> ssl.SSLContext:
    """Return the TLS context for brokers; the system trust store is the default."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    versions = [_VERSIONS[version] for version in properties.tls_versions]
    context.minimum_version = min(versions, default=ssl.TLSVersion.TLSv1_2)
    if versions:
        context.maximum_version = max(versions)
    context.check_hostname = properties.check_hostname
    if properties.truststore:
        _load_truststore(context, properties.truststore)
    else:
        context.load_default_certs()
    if properties.keystore:
        _load_keystore(context, properties.keystore)
    return context


def _load_truststore(context: ssl.SSLContext, store: Store) -> None:
    name = store.name
    content = _content(store)
    if not content.startswith(_PEM) and _PEM not in content:
        content = _certificates_of_pkcs12(content, store, name)
    try:
        context.load_verify_locations(cadata=content.decode("ascii", errors="ignore"))
    except (ssl.SSLError, ValueError):
        raise InputError(f"{name}: there is no certificate in it that can be read") from None


def _load_keystore(context: ssl.SSLContext, store: Store) -> None:
    name = store.name
    content = _content(store)
    password = store.key_password.reveal()
    if _PEM not in content:
        password = secrets.token_urlsafe()
        content = _key_and_chain(content, store, name, password)
    # OpenSSL reads keys from files only: use a private one and delete it right away.
    descriptor, path = tempfile.mkstemp(prefix="advisor-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        context.load_cert_chain(path, password=password)
    except (ssl.SSLError, OSError, ValueError):
        raise InputError(
            f"{name}: the key and its certificates cannot be read; they must belong together, and "
            "ssl.key.password must open the key if it is encrypted"
        ) from None
    finally:
        os.unlink(path)


def _content(store: Store) -> bytes:
    if not store.location:
        return f"{store.key.reveal()}\n{store.certificates.reveal()}".encode()
    try:
        content = read_input(store.location.reveal(), MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise InputError(f"{store.name}: this store cannot be read ({reason})") from None
    if content.startswith(_JKS):
        raise InputError(
            f"{store.name}: a JKS store can be read by Java only; convert it with keytool "
            "-importkeystore -srckeystore STORE.jks -destkeystore store.p12 "
            "-deststoretype PKCS12, and name store.p12 instead"
        )
    return content


def _certificates_of_pkcs12(content: bytes, store: Store, name: str) -> bytes:
    opened = _open_pkcs12(content, store, name)
    entries = [entry for entry in (opened.cert, *opened.additional_certs) if entry is not None]
    return b"".join(_pem(entry) for entry in entries)


def _key_and_chain(content: bytes, store: Store, name: str, password: str) -> bytes:
    opened = _open_pkcs12(content, store, name)
    if opened.key is None or opened.cert is None:
        raise InputError(f"{name}: there is no private key with its certificate in it")
    from cryptography.hazmat.primitives import serialization as forms

    key = opened.key.private_bytes(
        forms.Encoding.PEM,
        forms.PrivateFormat.PKCS8,
        forms.BestAvailableEncryption(password.encode()),
    )
    return key + b"".join(_pem(entry) for entry in (opened.cert, *opened.additional_certs))


def _pem(entry: PKCS12Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return entry.certificate.public_bytes(Encoding.PEM) + b"\n"


def _open_pkcs12(content: bytes, store: Store, name: str) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ModuleNotFoundError:
        raise MissingExtraError("Reading a PKCS12 store", "live") from None
    password = store.password.reveal().encode() or None
    try:
        return pkcs12.load_pkcs12(content, password)
    except (ValueError, TypeError):
        raise InputError(
            f"{name}: this is neither PEM nor a PKCS12 store that the password given opens"
        ) from None
