"""The server's log, on stderr: lines for people, or a JSON object a line."""

from __future__ import annotations

import logging
import time
from typing import Final, Literal

from pythonjsonlogger.json import JsonFormatter

LogFormat = Literal["text", "json"]
_FIELDS: Final = {"asctime": "time", "levelname": "level", "name": "logger"}


def log_to_stderr(format: LogFormat) -> None:
    """From INFO on. JSON objects have time (ISO 8601, UTC), level, logger, message, and what the message is about, the
    query's name for instance."""
    handler = logging.StreamHandler()
    if format == "json":
        formatter = JsonFormatter("%(asctime)s%(levelname)s%(name)s%(message)s", rename_fields=_FIELDS)
        formatter.converter = time.gmtime
        formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
        handler.setFormatter(formatter)
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request's address, with users and tokens
