"""A token server over HTTP for the client-credentials grant; its tokens are unsigned."""

from __future__ import annotations

import base64
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs

import orjson

CLIENT, SECRET = "pvstream", "word of the client/+"
SCOPE = "kafka"


def unsigned_token(lifetime: float) -> str:
    """A JWT without a signature (RFC 7519, section 6) that is valid for `lifetime` seconds."""
    now = time.time()
    claims = {"sub": CLIENT, "iat": now, "exp": now + lifetime, "scope": SCOPE}
    parts = (orjson.dumps({"alg": "none"}), orjson.dumps(claims), b"")
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


class TokenServer:
    """Runs in a thread; a context manager. `issued` are the tokens, `refused` counts wrong requests."""

    def __init__(self, lifetime: float) -> None:
        self.lifetime = lifetime
        self.issued: list[str] = []
        self.refused = 0
        self.failing = False
        self.pause = 0.0
        """Seconds between the two halves of a body, as a slow network or a chunked answer has them."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, form: dict[str, list[str]], authorization: str) -> tuple[int, dict[str, object]]:
        """Status and body, as RFC 6749 has them."""
        if self.failing:
            return 503, {}
        # Form-encoded by section 2.3.1, then base64 by HTTP.
        expected = base64.b64encode(b"pvstream:word+of+the+client%2F%2B").decode()
        if authorization != f"Basic {expected}":
            self.refused += 1
            return 401, {"error": "invalid_client", "error_description": f"not {authorization}"}
        if form != {"grant_type": ["client_credentials"], "scope": [SCOPE]}:
            self.refused += 1
            return 400, {"error": "invalid_request"}
        self.issued.append(unsigned_token(self.lifetime))
        return 200, {"access_token": self.issued[-1], "token_type": "Bearer", "expires_in": self.lifetime}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, answer = server.answer(parse_qs(body), self.headers["Authorization"] or "")
                content = orjson.dumps(answer)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                half = len(content) // 2
                self.wfile.write(content[:half])
                time.sleep(server.pause)
                self.wfile.write(content[half:])

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        return Handler
