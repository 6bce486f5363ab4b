"""The review page's server: the standard library's, on the loopback interface alone, with a secret in the path.

Every request must name the secret (the first part of the path) and this host (no page of another name that resolves to
127.0.0.1 may ask); answers forbid the browser anything from elsewhere."""
import http
import http.server
import json
import mimetypes
import secrets
import threading
from importlib import resources

from ..below import StrictJSONError, parse_json
from ..corrections import ReviewConflict

HOST = "127.0.0.1"
LARGEST = 1 << 20  # bytes of a request
STATIC = {"": "review.html", "review.js": "review.js", "pages.js": "pages.js", "review.css": "review.css"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " \
         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Refused(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class ReviewServer(http.server.ThreadingHTTPServer):
    """A server of one Session. `url` is what to open in the browser."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, session, port=0, token=None):
        super().__init__((HOST, port), Handler)
        self.session, self.token = session, token or secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def url(self):
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request, client_address):
        """A browser that went away in mid-answer is no news."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dx", ""
    timeout = 60

    def log_message(self, format, *arguments):
        """Silent: the address holds the secret."""

    def do_GET(self):
        self._answer(self._get)

    def do_POST(self):
        self._answer(self._post)

    def _answer(self, work):
        try:
            self._check()
            status, kind, data = work(self.path.partition("?")[0].split("/")[2:])
        except Refused as refused:
            status, kind, data = refused.status, "application/json", _json({"error": str(refused)})
        except ReviewConflict as conflict:
            status, kind = http.HTTPStatus.CONFLICT, "application/json"
            data = _json({"error": str(conflict), "revision": conflict.revision, "value": conflict.value})
        except (ValueError, OSError) as error:
            status, kind, data = http.HTTPStatus.BAD_REQUEST, "application/json", _json({"error": str(error)})
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff"),
                            ("Referrer-Policy", "no-referrer")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _check(self):
        if self.headers.get("Host") not in self.server.hosts:
            raise Refused(http.HTTPStatus.FORBIDDEN, "this server answers to its own address alone")
        parts = self.path.split("/")
        if len(parts) < 3 or not secrets.compare_digest(parts[1].encode(), self.server.token.encode()):
            raise Refused(http.HTTPStatus.FORBIDDEN, "the address lacks its secret: open the one that dx printed")

    def _get(self, parts):
        session = self.server.session
        if len(parts) == 1 and parts[0] in STATIC:
            name = STATIC[parts[0]]
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            return 200, f"{kind}; charset=utf-8", (resources.files(__package__) / "static" / name).read_bytes()
        match parts:
            case ["api", "project"]:
                return 200, "application/json", _json(session.overview())
            case ["api", "documents"]:
                return 200, "application/json", _json(session.listing())
            case ["api", "document", number]:
                return 200, "application/json", _json(session.document(_number(number)))
            case ["api", "document", number, "history"]:
                return 200, "application/json", _json(session.record(_number(number)))
            case ["api", "document", number, "image", page]:
                path = session.image(_number(number), _number(page))
                kind = mimetypes.guess_type(path.name)[0] or ""
                if not kind.startswith("image/") or "svg" in kind:  # an SVG could hold scripts
                    raise Refused(http.HTTPStatus.NOT_FOUND, f"{path.name}: no picture a browser shows")
                return 200, kind, path.read_bytes()
        raise Refused(http.HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _post(self, parts):
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise Refused(http.HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST:
            self.close_connection = True
            raise Refused(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {LARGEST} bytes")
        try:
            value = parse_json(self.rfile.read(int(length)).decode("utf-8"))
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise Refused(http.HTTPStatus.BAD_REQUEST, str(error)) from None
        match parts:
            case ["api", "document", number, "field"] if isinstance(value, dict):
                missing = [k for k in ("field", "revision", "value") if k not in value]
                if missing:
                    raise Refused(http.HTTPStatus.BAD_REQUEST, f"{missing[0]} is missing")
                answer = self.server.session.correct(_number(number), value["field"], value["revision"], value["value"])
                return 200, "application/json", _json(answer)
        raise Refused(http.HTTPStatus.NOT_FOUND, "there is nothing at this address")


def _number(text):
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Refused(http.HTTPStatus.NOT_FOUND, f"{text[:20]!r} is no number")
    return int(text)


def _json(value):
    return json.dumps(value, allow_nan=False).encode("ascii")


def serve(session, *, port=0, ready=None):
    """Serves a session until interrupted (KeyboardInterrupt, which passes on).

    Parameters
    ----------
    port : int, 0: a free one
    ready : callable that takes the address once the server listens
    """
    server = ReviewServer(session, port)
    worker = threading.Thread(target=session.predict_all, daemon=True)
    try:
        worker.start()
        if ready is not None:
            ready(server.url)
        server.serve_forever()
    finally:
        session.stop()
        server.server_close()
        worker.join()
