"""The store of reusable state: crashes, several writers, files that went bad, house-keeping."""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from dx_model.readout import ReadoutError
from dx_model.runtime import StateStore
from dx_model.runtime.arrays import arrays_from_bytes, arrays_to_bytes
from readout_record import digest_of, refused

KEY, OTHER, RELEASE = digest_of("key"), digest_of("other"), digest_of("release")
ARRAYS = {"rows": np.arange(6, dtype=np.float32).reshape(2, 3), "places": np.array([4, 9], np.int64)}


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and "locks" not in p.parts)


def same(found):
    return found is not None and all(found[n].tobytes() == a.tobytes() and found[n].dtype == a.dtype
                                     and found[n].shape == a.shape for n, a in ARRAYS.items())


def test_what_is_put_is_found_and_equal_content_is_stored_once(tmp_path):
    store = StateStore(tmp_path)
    assert store.get("vector", KEY) is None and store.corrupt == []
    digest = store.put("vector", KEY, RELEASE, ARRAYS)
    assert same(store.get("vector", KEY)) and store.get("score", KEY) is None
    assert store.put("vector", OTHER, RELEASE, ARRAYS) == digest and store.size() == len(arrays_to_bytes(ARRAYS))
    assert same(StateStore(tmp_path).get("vector", OTHER)) and len(files(tmp_path)) == 3
    with pytest.raises(ValueError, match="read-only"):
        store.get("vector", KEY)["rows"][0, 0] = 1


def test_corrupt_files_are_named_and_computed_again(tmp_path):
    told = []
    store = StateStore(tmp_path, told.append)
    digest = store.put("vector", KEY, RELEASE, ARRAYS)
    store.put("vector", OTHER, RELEASE, ARRAYS)
    entry, content = tmp_path / "vector" / KEY[:2] / f"{KEY}.json", tmp_path / "objects" / digest[:2] / digest
    whole, calls = content.read_bytes(), []

    def compute():
        calls.append(1)
        return ARRAYS

    flipped = bytearray(whole)
    flipped[-1] ^= 1
    for path, bad in ((content, bytes(flipped)), (content, whole[:-3]), (content, b""), (content, None), (entry, b"{"),
                      (entry, b"\xff"), (entry, entry.read_bytes()[:-4]), (entry, b'{"key": 1}'),
                      (entry, (tmp_path / "vector" / OTHER[:2] / f"{OTHER}.json").read_bytes())):
        path.unlink() if bad is None else path.write_bytes(bad)
        before = len(told)
        assert store.get("vector", KEY) is None
        assert same(store.get_or_compute("vector", KEY, RELEASE, compute))
        assert told[before].path == path.relative_to(tmp_path).as_posix() and told[before].reason
        assert content.read_bytes() == whole and same(store.get("vector", KEY))
    assert len(calls) == 9 and store.corrupt == told


def test_a_key_that_leaves_something_out_is_found(tmp_path):
    """Two results under one key: the key does not cover what decides them. The first stays."""
    store = StateStore(tmp_path)
    store.put("vector", KEY, RELEASE, ARRAYS)
    with pytest.raises(ReadoutError, match="the key leaves out something"):
        store.put("vector", KEY, RELEASE, {**ARRAYS, "places": np.array([4, 8], np.int64)})
    assert same(store.get("vector", KEY))


WRITER = """
import sys, numpy as np
from dx_model.runtime import StateStore
store, k = StateStore(sys.argv[1]), 0
print("ready", flush=True)
while k < int(sys.argv[2]):
    key = f"{k % 40:064x}"
    store.put("vector", key, "r" * 64, {"x": np.full(5000, k % 40, np.float32)})
    found = store.get("vector", key)
    assert found is not None and (found["x"] == k % 40).all() and not store.corrupt, store.corrupt
    k += 1
"""


def start(folder, count):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(count)], stdout=subprocess.PIPE, text=True)


def test_several_processes_write_and_read_one_store(tmp_path):
    writers = [start(tmp_path, 80) for _ in range(3)]
    assert [w.communicate()[0] and w.returncode for w in writers] == [0, 0, 0]
    store = StateStore(tmp_path)
    assert all((store.get("vector", f"{k:064x}")["x"] == k).all() for k in range(40)) and store.corrupt == []
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]


def test_killed_writers_leave_whole_files_and_no_lock(tmp_path):
    for wait in (0.0, 0.01, 0.03, 0.06):
        writer = start(tmp_path, 10**9)
        writer.stdout.readline()
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    store = StateStore(tmp_path)
    for k in range(40):  # nothing half-written is found, and nothing waits for the dead
        key = f"{k:064x}"
        value = store.get_or_compute("vector", key, "r" * 64, lambda k=k: {"x": np.full(5000, k, np.float32)})
        assert (value["x"] == k).all()
    assert store.corrupt == []
    store.prune(["r" * 64])
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")] and len(files(tmp_path)) == 80


def test_one_computation_at_a_time_for_a_key(tmp_path):
    store, calls, found = StateStore(tmp_path), [], []

    def compute():
        calls.append(1)
        time.sleep(0.05)
        return ARRAYS

    threads = [threading.Thread(target=lambda: found.append(store.get_or_compute("vector", KEY, RELEASE, compute)))
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(calls) == 1 and len(found) == 4 and all(same(f) for f in found)


def test_layers_are_computed_from_the_ones_below(tmp_path):
    store = StateStore(tmp_path)

    def vector():
        rows = store.get_or_compute("contextual", KEY, RELEASE, lambda: ARRAYS)["rows"]
        return {"vector": rows[0]}

    assert store.get_or_compute("vector", KEY, RELEASE, vector)["vector"].tolist() == [0, 1, 2]
    failing = StateStore(tmp_path)
    with pytest.raises(ZeroDivisionError):
        failing.get_or_compute("score", KEY, RELEASE, lambda: 1 / 0)
    assert failing.get("score", KEY) is None  # and the lock is free again
    assert same(failing.get_or_compute("score", KEY, RELEASE, lambda: ARRAYS))


def test_pruning_keeps_the_releases_that_are_named(tmp_path):
    store, old = StateStore(tmp_path), digest_of("old release")
    store.put("vector", KEY, RELEASE, ARRAYS)
    store.put("vector", OTHER, old, {"x": np.zeros(3, np.float32)})
    (tmp_path / "objects" / "ab").mkdir(exist_ok=True)
    (tmp_path / "objects" / "ab" / ".left.tmp").write_bytes(b"half")
    (tmp_path / "vector" / KEY[:2] / f".{KEY}.json.x.tmp").write_bytes(b"half")
    assert store.prune([RELEASE]) == 4 and same(store.get("vector", KEY)) and store.get("vector", OTHER) is None
    assert store.prune([RELEASE]) == 0 and len(files(tmp_path)) == 2 and store.corrupt == []


def test_names_and_arrays_are_checked(tmp_path):
    store = StateStore(tmp_path)
    refused(lambda: store.get("state", KEY), "cache.layer")
    for key in ("../../x", KEY.upper(), KEY[:-1], 5):
        refused(lambda key=key: store.get("vector", key), "cache.key")
    refused(lambda: store.put("vector", KEY, RELEASE, {"x": np.array(["a"])}), "arrays.x.dtype")
    refused(lambda: store.put("vector", KEY, RELEASE, {"x": np.array([np.nan])}), "arrays.x")
    data = arrays_to_bytes(ARRAYS)
    assert data == arrays_to_bytes(dict(reversed(ARRAYS.items()))) and files(tmp_path) == []
    for bad in (b"", data[:-1], data + b"x", b"x" + data[1:], data[:20]):
        with pytest.raises(ValueError):
            arrays_from_bytes(bad)
    assert Path(store.folder) == tmp_path and os.path.isdir(tmp_path / "locks")
