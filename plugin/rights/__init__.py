"""Who may do what: named tokens, their grants, and one decision for all servers.

    token file, settings ─▶ who ─▶ `Rights` ─▶ with the request ─▶ whoever answers it: `Rights.demand`

grants.py knows nothing of HTTP. A `Rights` travels with each request, so whatever owns the socket only has
to identify the client.
"""

from oxiseq.rights.grants import (
    ANONYMOUS,
    EVERYTHING,
    NOTHING,
    DeniedError,
    Grant,
    Kind,
    Right,
    Rights,
    Token,
    TokenError,
    TokenFile,
    TokenTable,
    allows,
    digest_of,
    grant_of,
    line_of,
    new_secret,
    tokens_of,
)

__all__ = [
    "ANONYMOUS",
    "EVERYTHING",
    "NOTHING",
    "DeniedError",
    "Grant",
    "Kind",
    "Right",
    "Rights",
    "Token",
    "TokenError",
    "TokenFile",
    "TokenTable",
    "allows",
    "digest_of",
    "grant_of",
    "line_of",
    "new_secret",
    "tokens_of",
]
