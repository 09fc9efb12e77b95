"""A server on this machine that answers as a test says, and files that collections have."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = gzip.compress(bytes(range(256)) * 5000 + b"end", mtime=0) + bytes(200_000)

MATRIX = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 4.5\n"


class Server(ThreadingHTTPServer):
    """Answers every path by a function, and keeps what was asked for."""

    answer: Callable[[BaseHTTPRequestHandler], None]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append((self.path, self.headers.get("Range")))
        self.server.answer(self)

    def log_message(self, format: str, *_arguments: object) -> None:
        pass


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def archive(**members: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            info.size = len(text)
            packed.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()
