"""The certificate of https: faults in it are reported before the server listens."""

from __future__ import annotations

import ssl
from pathlib import Path

from oxiseq.engine.errors import OxiseqError


def tls_context(cert: Path, key: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and newer with this certificate chain and its private key, which may be in the same file; both PEM.

    Raises OxiseqError that names the file.
    """
    for file in filter(None, (cert, key)):
        try:
            file.open("rb").close()
        except OSError as error:
            raise OxiseqError(f"{file}: cannot be read: {error.strerror or error}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key, password=_asked)
    except ssl.SSLError as error:
        raise OxiseqError(_said(cert, key or cert, error)) from error
    return context


def _asked() -> str:
    """OpenSSL would ask for it on the terminal, and wait there."""
    raise OxiseqError(
        "the private key is encrypted: a server cannot ask for its password; "
        "`openssl pkey -in KEY -out PLAIN` writes it without"
    )


def _said(cert: Path, key: Path, error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return f"{key}: is not the private key of the certificate in {cert}"
    if reason.startswith(("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "EE_MD_TOO_WEAK")):
        return f"{cert}: OpenSSL takes it for too weak ({reason.replace('_', ' ').lower()})"
    return f"{cert} and {key}: no certificate in PEM with its private key ({reason or error})"
