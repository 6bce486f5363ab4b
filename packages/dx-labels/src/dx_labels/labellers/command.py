"""Any command as a labelling model: the document goes in on stdin, the values come out on stdout."""
import contextlib
import json
import os
import signal
import subprocess

from ..below import StrictJSONError, page_to_json, parse_json
from ..labels import LabelError, check_values
from .base import LabellerError

LARGEST_REPLY = 1 << 24  # bytes


class CommandLabeller:
    """A labeller that runs a command for every document.

    command : list of str, program and arguments; no shell is involved
    timeout : seconds; the command and what it started are killed then

    stdin: one JSON object {"id", "schema", "pages": [page, …]} in UTF-8. stdout: one JSON object of the schema's
    fields; a field that is missing has no value. Any other output, or an exit code that is not 0, is an error with the
    end of
    stderr.
    """

    def __init__(self, command, timeout=120.0):
        self.command, self.timeout = list(command), timeout
        if not self.command:
            raise ValueError("the command is empty")

    def identity(self):
        return {"kind": "command", "command": self.command}

    def label(self, document, schema):
        where = f"document {document.id!r}: {self.command[0]}"
        asked = {"id": document.id, "schema": schema.to_json(), "pages": [page_to_json(p) for p in document.pages]}
        code, out, err = self._run(where, json.dumps(asked).encode("ascii"))
        if code != 0:
            raise LabellerError(f"{where}: exit code {code}{_tail(err)}")
        if len(out) > LARGEST_REPLY:
            raise LabellerError(f"{where}: more than {LARGEST_REPLY} bytes on stdout")
        try:
            values = parse_json(out.decode("utf-8"))
            check_values(document.id, schema, values)
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise LabellerError(f"{where}: stdout is no JSON object: {error}{_tail(err)}") from None
        except LabelError as error:
            raise LabellerError(f"{error} (from {self.command[0]})") from None
        return values

    def _run(self, where, data):
        try:
            process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise LabellerError(f"{where}: {error}") from None
        try:
            out, err = process.communicate(data, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise LabellerError(f"{where}: no answer within {self.timeout} seconds") from None
        finally:
            if process.poll() is None:
                _kill(process)
        return process.returncode, out, err


def _kill(process):
    """Kills the command's own process group, and waits."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()


def _tail(err):
    text = err.decode("utf-8", "replace").strip()
    return f": …{text[-300:]}" if len(text) > 300 else f": {text}" if text else ""
