"""A chat model behind an OpenAI-compatible HTTP endpoint, with the standard library alone."""
import contextlib
import http.client
import json
import os
import socket
import threading
import time
from urllib.parse import urlsplit

from ..below import StrictJSONError, parse_json
from ..labels import LabelError, check_values
from .base import LabellerError, page_lines

PROMPT_VERSION = 1
SYSTEM = (
    "You read values from documents. Answer with one JSON object and nothing else: a key for every field asked for. "
    "The value of a key is the text exactly as it is printed in the document; null when the document does not have it; "
    "a list of such texts for a field marked repeated. Copy the characters, do not correct or reformat them. A value "
    'that is not printed but follows from what is printed is {"value": "…", "computed": true}.')
LARGEST_REPLY = 1 << 24  # bytes
LONGEST_WAIT = 60.0  # seconds between two attempts
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)  # status codes that are worth another attempt


class _Retry(Exception):
    """This attempt failed in a way that another may not. wait: seconds the server asks for, or None."""

    def __init__(self, reason, wait=None):
        super().__init__(reason)
        self.wait = wait


class ChatLabeller:
    """A labeller that asks a chat endpoint.

    url : of the endpoint's chat completions (…/v1/chat/completions)
    model : name of the model
    key : environment variable that holds the key (default DX_LABEL_KEY; not set: no key is sent). The key goes into the
        request's header and nowhere else; messages have it blanked out.
    timeout : seconds for one attempt, from connecting to the last byte
    attempts : how often a document is asked for at most
    backoff : seconds before the second attempt, doubled each time, at most 60; a Retry-After of the server counts, up
        to the same bound
    sleep : what waits (for tests)

    No redirect is followed: the key goes to the named host alone. Tried again: no connection, no answer in time, a
    reply cut short, status 408, 409, 425, 429, 500, 502, 503, 504, and an answer that is not the JSON object asked for.
    """

    def __init__(self, url, model, *, key="DX_LABEL_KEY", timeout=60.0, attempts=4, backoff=1.0, sleep=time.sleep):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url = {url!r}: expected http://… or https://…")
        if parts.username or parts.password:
            raise ValueError("url holds a user or password: keys come from the environment")
        if attempts < 1:
            raise ValueError(f"attempts = {attempts}: expected at least 1")
        self.url, self.model, self.parts = url, model, parts
        self.timeout, self.attempts, self.backoff, self.sleep = timeout, attempts, backoff, sleep
        self._key = os.environ.get(key) or None
        if self._key and any(not " " < c <= "~" for c in self._key):
            raise ValueError(f"the environment variable {key} holds white space or characters that no header takes")

    def __repr__(self):
        return f"ChatLabeller({self.url!r}, {self.model!r})"

    def identity(self):
        return {"kind": "chat", "url": self.url, "model": self.model, "prompt": PROMPT_VERSION, "system": SYSTEM}

    def request(self, document, schema):
        """The request's body; dict."""
        fields = []
        for field in schema.fields:
            marks = [field.type, *(["repeated"] if field.repeated else []), *field.hints]
            if field.languages:
                marks.append("languages: " + ", ".join(field.languages))
            fields.append(f"- {json.dumps(field.name, ensure_ascii=False)} ({'; '.join(marks)})")
        pages = [f"--- page {i + 1} of {len(document.pages)} ---\n" + "\n".join(page_lines(page))
                 for i, page in enumerate(document.pages)]
        user = "Fields:\n" + "\n".join(fields) + "\n\nDocument:\n" + "\n".join(pages)
        return {"model": self.model, "temperature": 0, "response_format": {"type": "json_object"},
                "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]}

    def label(self, document, schema):
        body = json.dumps(self.request(document, schema)).encode("ascii")
        wait = self.backoff
        for attempt in range(1, self.attempts + 1):
            try:
                return self._answer(self._post(body), document, schema)
            except _Retry as failed:
                reason = self._blank(str(failed))
                if attempt == self.attempts:
                    raise LabellerError(f"document {document.id!r}: {self.parts.hostname}: {reason} "
                                        f"({attempt} attempts)") from None
                self.sleep(min(max(wait, failed.wait or 0.0), LONGEST_WAIT))
                wait *= 2
            except LabellerError as error:
                raise LabellerError(f"document {document.id!r}: {self.parts.hostname}: "
                                    f"{self._blank(str(error))}") from None

    def _blank(self, text):
        return text.replace(self._key, "***") if self._key else text

    def _post(self, body):
        """The body of a good reply; bytes."""
        kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.parts.hostname, self.parts.port, timeout=self.timeout)
        late, sockets = threading.Event(), []  # the socket is held here: a reply that closes takes it from connection

        def stop():  # a server that trickles keeps every single read alive: the whole attempt has one deadline
            late.set()
            for sock in sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(self.timeout, stop)
        timer.daemon = True
        timer.start()
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            path = (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")
            connection.connect()
            sockets.append(connection.sock)
            if late.is_set():
                raise TimeoutError
            connection.request("POST", path, body, headers)
            reply = connection.getresponse()
            data = reply.read(LARGEST_REPLY + 1)
            if late.is_set():
                raise _Retry(f"no answer within {self.timeout} seconds")
        except (OSError, http.client.HTTPException) as error:
            if late.is_set() or isinstance(error, TimeoutError):
                raise _Retry(f"no answer within {self.timeout} seconds") from None
            if isinstance(error, http.client.IncompleteRead):
                raise _Retry(f"the reply was cut short after {len(error.partial)} bytes") from None
            raise _Retry(f"{type(error).__name__}: {error}") from None
        finally:
            timer.cancel()
            connection.close()
        if len(data) > LARGEST_REPLY:
            raise LabellerError(f"a reply of more than {LARGEST_REPLY} bytes")
        if reply.status != 200:
            reason = f"status {reply.status} {reply.reason}: {data[:200].decode('utf-8', 'replace')}"
            if reply.status in AGAIN:
                raise _Retry(reason, _seconds(reply.headers.get("Retry-After")))
            raise LabellerError(reason)
        return data

    def _answer(self, data, document, schema):
        """The values of a reply; _Retry when it is not the object that was asked for."""
        try:
            reply = parse_json(data.decode("utf-8"))
            choice = reply["choices"][0]
            content = choice["message"]["content"]
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise _Retry(f"the reply is cut or no JSON: {error}") from None
        except (KeyError, IndexError, TypeError):
            raise _Retry("the reply has no choices[0].message.content") from None
        if not isinstance(content, str):
            raise _Retry("the reply has no text")
        if choice.get("finish_reason") == "length":
            raise _Retry("the answer was cut at the model's length limit")
        text = content.strip()
        if text.startswith("```") and text.endswith("```") and "\n" in text:
            text = text[text.index("\n") + 1:-3].strip()
        try:
            values = parse_json(text)
            check_values(document.id, schema, values, complete=True)
        except StrictJSONError as error:
            raise _Retry(f"the answer is no JSON object ({error}): {content[:80]!r}") from None
        except LabelError as error:
            raise _Retry(f"the answer does not fit the schema: {error}") from None
        return values


def _seconds(text):
    """A Retry-After in seconds; None for a date or nonsense."""
    if text is None or not text.strip().isascii() or not text.strip().isdigit():
        return None
    return float(text.strip()[:6])
