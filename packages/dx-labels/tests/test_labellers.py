"""Labelling models against a command and a real HTTP server that also misbehaves."""
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from dx_labels.labellers import (Cached, ChatLabeller, CommandLabeller, FileLabeller, Labeller, LabellerError, ask_all,
                                 page_lines)
from dx_labels.schema import schema_from_json
from pages_for_tests import document_of

SCHEMA = schema_from_json({"fields": [{"name": "shop", "hints": ["the seller"]}, {"name": "total", "type": "amount"}]})
GOOD = {"shop": "ACME", "total": "8.20"}
DOCUMENT = document_of("ACME Inc", "total 8.20", id="doc")
KEY = "sk-not-a-real-key-1234"


class Endpoint:
    """A local endpoint that behaves as `script` says, one entry a request; the last entry stays."""

    def __init__(self, *script):
        self.script, self.requests, self.lock, self.done = list(script), [], threading.Lock(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    outer.requests.append((self.path, dict(self.headers), json.loads(body)))
                    step = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                step(self, outer)

            def do_GET(self):
                with outer.lock:
                    outer.requests.append((self.path, dict(self.headers), None))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions"

    def close(self):
        self.done.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def reply(handler, status, data, length=None, headers=()):
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def says(content, **more):
    data = json.dumps({"choices": [{"message": {"content": content}, **more}]}).encode()
    return lambda handler, outer: reply(handler, 200, data)


def status(code, headers=(), text=b"{}"):
    return lambda handler, outer: reply(handler, code, text, headers=headers)


def hangs(handler, outer):
    outer.done.wait(20)


def trickles(handler, outer):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    try:
        while not outer.done.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()
    except OSError:
        pass


def cut(handler, outer):
    data = json.dumps({"choices": [{"message": {"content": json.dumps(GOOD)}}]}).encode()
    reply(handler, 200, data[:40], length=len(data))
    handler.close_connection = True


def half_json(handler, outer):
    reply(handler, 200, json.dumps({"choices": [{"message": {"content": "x"}}]}).encode()[:-8])


good = says(json.dumps(GOOD))


@pytest.fixture
def endpoint():
    made = []

    def make(*script):
        made.append(Endpoint(*script))
        return made[-1]

    yield make
    for one in made:
        one.close()


def chat(server, **options):
    waits = []
    labeller = ChatLabeller(server.url, "tiny", **{"timeout": 5.0, "sleep": waits.append, **options})
    labeller.waits = waits
    return labeller


def test_a_good_answer(endpoint, monkeypatch):
    monkeypatch.setenv("DX_LABEL_KEY", KEY)
    server = endpoint(good)
    labeller = chat(server)
    assert isinstance(labeller, Labeller) and labeller.label(DOCUMENT, SCHEMA) == GOOD
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions" and headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "tiny" and body["temperature"] == 0
    text = body["messages"][1]["content"]
    assert '"shop" (text; the seller)' in text and "ACME Inc\ntotal 8.20" in text
    assert KEY not in json.dumps(labeller.identity()) and KEY not in repr(labeller)


def test_no_key_no_header(endpoint, monkeypatch):
    monkeypatch.delenv("DX_LABEL_KEY", raising=False)
    server = endpoint(good)
    chat(server).label(DOCUMENT, SCHEMA)
    assert "Authorization" not in server.requests[0][1]


@pytest.mark.parametrize("bad", [status(429), status(500), status(503), cut, half_json, says("Here you are: ACME"),
                                 says('{"shop": "ACME"}'), says('{"shop": 1, "total": NaN}'),
                                 says('{"shop": "a", "total": "1", "more": 2}'), says("[]"), says(None),
                                 says(json.dumps(GOOD), finish_reason="length")],
                         ids=["429", "500", "503", "cut", "half JSON", "prose", "missing", "NaN", "unknown", "list",
                              "nothing", "length"])
def test_one_bad_reply_is_asked_again(endpoint, bad):
    server = endpoint(bad, good)
    labeller = chat(server)
    assert labeller.label(DOCUMENT, SCHEMA) == GOOD and len(server.requests) == 2 and labeller.waits == [1.0]


def test_attempts_are_bounded_and_back_off(endpoint):
    server = endpoint(status(500, text=b"out of order"))
    labeller = chat(server, attempts=4)
    with pytest.raises(LabellerError, match=r"document 'doc': 127.0.0.1: status 500.*out of order.*4 attempts"):
        labeller.label(DOCUMENT, SCHEMA)
    assert len(server.requests) == 4 and labeller.waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("header, waited", [("7", 7.0), ("999999999", 60.0), ("soon", 1.0), ("0", 1.0)])
def test_retry_after_is_heard_up_to_a_bound(endpoint, header, waited):
    labeller = chat(endpoint(status(429, [("Retry-After", header)]), good))
    assert labeller.label(DOCUMENT, SCHEMA) == GOOD and labeller.waits == [waited]


@pytest.mark.parametrize("step", [hangs, trickles])
def test_an_attempt_has_one_deadline(endpoint, step):
    server = endpoint(step)
    start = time.monotonic()
    with pytest.raises(LabellerError, match="no answer within 0.3 seconds.*2 attempts"):
        chat(server, timeout=0.3, attempts=2).label(DOCUMENT, SCHEMA)
    assert time.monotonic() - start < 5 and len(server.requests) == 2


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_what_is_wrong_for_good_is_asked_once(endpoint, monkeypatch, code):
    monkeypatch.setenv("DX_LABEL_KEY", KEY)
    server = endpoint(status(code, text=f"key {KEY} is not welcome".encode()))
    with pytest.raises(LabellerError) as error:
        chat(server).label(DOCUMENT, SCHEMA)
    assert len(server.requests) == 1 and KEY not in str(error.value) and "***" in str(error.value)


def test_no_redirect_takes_the_key_elsewhere(endpoint, monkeypatch):
    monkeypatch.setenv("DX_LABEL_KEY", KEY)
    other = endpoint(good)
    server = endpoint(status(307, [("Location", other.url)]))
    with pytest.raises(LabellerError, match="status 307"):
        chat(server).label(DOCUMENT, SCHEMA)
    assert other.requests == []


def test_nobody_listens(endpoint):
    server = endpoint(good)
    url = server.url
    server.close()
    with pytest.raises(LabellerError, match="2 attempts"):
        ChatLabeller(url, "tiny", attempts=2, sleep=lambda s: None).label(DOCUMENT, SCHEMA)


def test_an_answer_in_a_code_fence_is_taken(endpoint):
    labeller = chat(endpoint(says("```json\n" + json.dumps(GOOD) + "\n```")))
    assert labeller.label(DOCUMENT, SCHEMA) == GOOD


@pytest.mark.parametrize("options", [{"url": "ftp://x"}, {"url": "http://u:p@x/"}, {"attempts": 0}])
def test_settings_that_cannot_be(options):
    with pytest.raises(ValueError):
        ChatLabeller(**{"url": "http://x/", "model": "m", **options})


def test_a_key_no_header_takes(monkeypatch):
    monkeypatch.setenv("DX_LABEL_KEY", "a\r\nX-Other: b")
    with pytest.raises(ValueError) as error:
        ChatLabeller("http://x/", "m")
    assert "X-Other" not in str(error.value)


def test_nothing_is_asked_twice(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("DX_LABEL_KEY", KEY)
    server = endpoint(good)
    first = Cached(chat(server), tmp_path)
    same = document_of("ACME Inc", "total 8.20", id="other name")
    assert first.label(DOCUMENT, SCHEMA) == first.label(same, SCHEMA) == GOOD and len(server.requests) == 1
    again = Cached(chat(server), tmp_path)
    assert again.label(DOCUMENT, SCHEMA) == GOOD and len(server.requests) == 1 and (again.asked, again.found) == (0, 1)
    assert all(KEY.encode() not in p.read_bytes() for p in tmp_path.rglob("*.json"))
    again.label(document_of("ACME Inc", "total 8.21"), SCHEMA)  # another page
    again.label(DOCUMENT, schema_from_json({"fields": ["shop", {"name": "total", "type": "amount"}]}))  # other hints
    Cached(ChatLabeller(server.url, "large"), tmp_path).label(DOCUMENT, SCHEMA)  # another model
    assert len(server.requests) == 4


def test_a_damaged_answer_is_asked_again(endpoint, tmp_path):
    server = endpoint(good)
    cached = Cached(chat(server), tmp_path)
    cached.label(DOCUMENT, SCHEMA)
    path, = tmp_path.rglob("*.json")
    for damage in (b"", b'{"key"', path.read_bytes()[:-9], b'{"key": "x", "values": {}}'):
        path.write_bytes(damage)
        assert Cached(chat(server), tmp_path).label(DOCUMENT, SCHEMA) == GOOD
    assert len(server.requests) == 5 and not list(tmp_path.rglob("*.tmp"))


def test_a_failure_is_not_kept(endpoint, tmp_path):
    server = endpoint(status(400), good)
    cached = Cached(chat(server), tmp_path)
    with pytest.raises(LabellerError):
        cached.label(DOCUMENT, SCHEMA)
    assert cached.label(DOCUMENT, SCHEMA) == GOOD


def test_many_at_a_time_keep_their_order_and_ask_equal_pages_once(endpoint, tmp_path):
    server = endpoint(good)
    documents = [document_of("ACME", str(i % 5), id=f"d{i}") for i in range(20)]
    cached = Cached(chat(server), tmp_path)
    answers = list(ask_all(cached, documents, SCHEMA, workers=6))
    assert [d.id for d, _ in answers] == [d.id for d in documents] and all(v == GOOD for _, v in answers)
    assert len(server.requests) == 5


def test_errors_are_answers_too(endpoint):
    server = endpoint(good, status(400), good)
    answers = [v for _, v in ask_all(chat(server), [DOCUMENT] * 3, SCHEMA)]
    assert answers[0] == answers[2] == GOOD and isinstance(answers[1], LabellerError)


def command(code, timeout=30.0):
    return CommandLabeller([sys.executable, "-c", code], timeout)


def test_a_command_reads_the_page_and_writes_the_values():
    code = ("import json, sys; a = json.load(sys.stdin); words = a['pages'][0]['words']\n"
            "print(json.dumps({a['schema']['fields'][0]['name']: words[0]['text'], 'total': None}))")
    assert command(code).label(DOCUMENT, SCHEMA) == {"shop": "ACME", "total": None}
    assert isinstance(command(code), Labeller)


@pytest.mark.parametrize("code, words", [
    ("import sys; sys.stderr.write('no luck'); sys.exit(3)", "exit code 3: no luck"),
    ("print('prose')", "no JSON object"),
    ("print('{}{}')", "no JSON object"), ("print('{\"shpo\": 1}')", "did you mean 'shop'"), ("", "no JSON object"),
    ("import os; os.write(1, b'\\xff')", "no JSON object"), ("print('[]')", "expected an object")])
def test_a_command_that_misbehaves(code, words):
    with pytest.raises(LabellerError, match=words):
        command(code).label(DOCUMENT, SCHEMA)


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path):
    code = ("import subprocess, sys, time\n"
            "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid))\ntime.sleep(60)")
    start = time.monotonic()
    with pytest.raises(LabellerError, match="no answer within 2.0 seconds"):
        command(code, 2.0).label(DOCUMENT, SCHEMA)
    assert time.monotonic() - start < 30
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().split()[2] == "Z":  # killed, not yet waited for by its new parent
            break
        time.sleep(0.05)
    else:
        pytest.fail("the command's child lives on")


def test_a_command_that_is_not_there():
    with pytest.raises(LabellerError, match="no-such-program"):
        CommandLabeller(["no-such-program-here"]).label(DOCUMENT, SCHEMA)
    with pytest.raises(ValueError):
        CommandLabeller([])


def test_values_from_a_file(tmp_path):
    lines = ['\ufeff{"id": "doc", "values": {"shop": "ACME"}}', "broken", '{"id": "b", "valeus": {}}', '{"values": {}}',
             '{"id": "c", "fields": {"total": 8.2}}', '{"id": "c", "values": {"total": "9"}}']
    (tmp_path / "v").write_text("\n".join(lines), encoding="utf-8")
    labeller = FileLabeller(tmp_path / "v")
    assert labeller.label(DOCUMENT, SCHEMA) == {"shop": "ACME"}
    assert labeller.label(document_of("x", id="c"), SCHEMA) == {"total": "9"}
    assert [p.split(":")[1] for p in labeller.problems] == ["2", "3", "4", "6"]
    assert "did you mean 'values'" in labeller.problems[1]
    with pytest.raises(LabellerError, match="no values"):
        labeller.label(document_of("x", id="d"), SCHEMA)


def test_lines_of_a_page_are_read_in_order():
    page, = document_of("a b", "c").pages
    assert page_lines(page) == ["a b", "c"]
