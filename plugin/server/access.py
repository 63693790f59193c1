"""Who may do what: bearer tokens."""

from __future__ import annotations

import hmac

import werkzeug

from oxiseq.server.settings import Tokens
from oxiseq.sparql import Problem


def check_token(request: werkzeug.Request, tokens: Tokens, *, writing: bool) -> None:
    """Raises Problem 401 (no token or a wrong one) or 403 (a read token where something is written)."""
    needed = tokens.write if writing else tokens.read
    if needed is None and not (writing and tokens.read is not None):
        return
    given = request.authorization
    token = given.token if given is not None and given.type == "bearer" and given.token else None
    may_write = _same(token, tokens.write)
    may_read = may_write or _same(token, tokens.read)
    if may_write or (may_read and not writing):
        return
    if may_read:
        raise Problem(403, "the token allows reading only")
    challenge = 'Bearer realm="oxiseq"' + (', error="invalid_token"' if token else "")
    raise Problem(401, "a token is needed", headers=(("WWW-Authenticate", challenge),))


def _same(given: str | None, secret: str | None) -> bool:
    """In a time that tells nothing of the secret."""
    if given is None or secret is None:
        return False
    return hmac.compare_digest(given.encode(), secret.encode())
