"""Certificates: what is wrong with them is told before the server listens."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from servers import served

from oxiseq.api.store import Store
from oxiseq.cli.app import main
from oxiseq.engine.errors import OxiseqError
from oxiseq.server import ServerSettings, Tokens
from oxiseq.server import settings as server_settings
from oxiseq.server.settings import tls_context
from oxiseq.sparql import SparqlEndpoint

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def certificate(folder: Path, name: str, *more: str) -> tuple[Path, Path]:
    """A certificate of its own for localhost, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            cert,
            *(more or ("-nodes",)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"), "ours")


def test_a_pair_in_two_files_or_one(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert tls_context(*pair).minimum_version == ssl.TLSVersion.TLSv1_2
    both = tmp_path / "both.pem"
    both.write_bytes(pair[1].read_bytes() + pair[0].read_bytes())
    tls_context(both)


def test_what_is_wrong_is_told_with_the_file(pair: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pair
    other, other_key = certificate(tmp_path, "other")
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    for given, said in (
        ((tmp_path / "none.pem", key), "none.pem: cannot be read: No such file"),
        ((cert, tmp_path), "cannot be read: Is a directory"),
        ((cert, other_key), "other.key: is not the private key of the certificate in"),
        ((cert, None), "no certificate in PEM with its private key"),
        ((empty, key), "no certificate in PEM with its private key"),
        ((key, key), "no certificate in PEM with its private key"),
        ((cert, cert), "no certificate in PEM with its private key"),
    ):
        with pytest.raises(OxiseqError, match=said.replace(".", r"\.")):
            tls_context(*given)
    assert other.exists()


def test_an_encrypted_key_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "locked", "-passout", "pass:secret")
    with pytest.raises(OxiseqError, match="the private key is encrypted"):
        tls_context(cert, key)


def test_the_server_speaks_https_and_nothing_else_there(pair: tuple[Path, Path]) -> None:
    settings = ServerSettings(port=0, threads=2, tokens=Tokens(read="r", write="w"), tls=tls_context(*pair))
    with served(SparqlEndpoint(Store()), settings) as address:
        parts = urlsplit(address)
        assert parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or 0
        trusted = ssl.create_default_context(cafile=str(pair[0]))
        connection = http.client.HTTPSConnection(host, port, context=trusted, timeout=20)
        for token, status in (("r", 200), ("wrong", 401)):
            connection.request("GET", "/query?query=ASK{}", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.request(
            "POST",
            "/update",
            "CLEAR ALL",
            {  # its own origin, by https
                "Authorization": "Bearer w",
                "Content-Type": "application/sparql-update",
                "Origin": address,
            },
        )
        assert connection.getresponse().status == 204
        connection.close()
        with socket.create_connection((host, port), timeout=20) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP/1.1 200")
        with pytest.raises(ssl.SSLError), socket.create_connection((host, port), timeout=20) as other:
            ssl.create_default_context().wrap_socket(other, server_hostname="localhost")


def ended(client: socket.socket, seconds: float) -> bool:
    """Whether the server closes it in that time."""
    client.settimeout(seconds)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_who_shakes_no_hands_counts_and_goes_for_those_who_do(
    sent: bytes, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence, half a hello, and no hello at all, by more clients than there may be."""
    monkeypatch.setattr(server_settings, "HANDSHAKE", 1.0)
    settings = ServerSettings(port=0, threads=1, connections=20, tls=tls_context(*pair))
    trusted = ssl.create_default_context(cafile=str(pair[0]))
    with served(SparqlEndpoint(Store()), settings) as address, ExitStack() as stack:
        place = (urlsplit(address).hostname or "", urlsplit(address).port or 0)
        begun = time.monotonic()
        strangers = [stack.enter_context(socket.create_connection(place, timeout=20)) for _ in range(100)]
        for stranger in strangers:
            stranger.sendall(sent)
        assert all(ended(stranger, 0.3) for stranger in strangers[:80])  # those beyond the limit, at once
        connection = http.client.HTTPSConnection(*place, context=trusted, timeout=20)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        assert all(ended(stranger, 5.0) for stranger in strangers)
        assert time.monotonic() - begun < 5
        connection.request("GET", "/health")  # who shook hands stays
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"])
def test_who_shakes_no_hands_is_cut_off_where_there_is_room_too(
    sent: bytes, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_settings, "HANDSHAKE", 0.5)
    with served(SparqlEndpoint(Store()), ServerSettings(port=0, tls=tls_context(*pair))) as address:
        place = (urlsplit(address).hostname or "", urlsplit(address).port or 0)
        with socket.create_connection(place, timeout=20) as stranger:
            stranger.sendall(sent)
            assert ended(stranger, 20.0)


def test_a_request_that_comes_with_the_handshake_is_answered(pair: tuple[Path, Path]) -> None:
    """Its bytes are there before the server's protocol is; and a client may end its side, or leave, at any moment."""
    settings = ServerSettings(port=0, threads=2, tls=tls_context(*pair))
    trusted = ssl.create_default_context(cafile=str(pair[0]))
    with served(SparqlEndpoint(Store()), settings) as address:
        place = (urlsplit(address).hostname or "", urlsplit(address).port or 0)
        for number in range(20):
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = trusted.wrap_bio(into, out, server_hostname="localhost")
            with socket.create_connection(place, timeout=20) as wire:
                while True:
                    try:
                        client.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        wire.sendall(out.read())
                        into.write(wire.recv(1 << 16))
                client.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                wire.sendall(out.read())  # the end of the handshake and the request, together
                if number % 2:
                    continue
                answer = b""
                while b"\r\n\r\n" not in answer:
                    into.write(wire.recv(1 << 16))
                    try:
                        answer += client.read(1 << 16)
                    except ssl.SSLWantReadError:
                        continue
                assert answer.startswith(b"HTTP/1.1 200")


def test_the_command_tells_what_is_wrong_before_it_opens_anything(pair: tuple[Path, Path], tmp_path: Path) -> None:
    for options, said in (
        (["--tls-key", str(pair[1])], "--tls-key is without its certificate"),
        (["--tls-cert", str(tmp_path / "none")], "none: cannot be read"),
    ):
        result = CliRunner().invoke(main, ["serve", "--location", str(tmp_path / "data"), *options])
        assert (result.exit_code, said in result.stderr) == (1, True), result.output
    assert not (tmp_path / "data").exists()
