"""The model file: what is written is read, and nothing else is."""
import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys

import dx_model
import numpy as np
import pytest
from dx_model.container import read_container, write_container
from dx_model.docextract import DocExtract, DocExtractConfig, ModelFileError

CONFIG = DocExtractConfig(fields=("total", "date"), roles=("question",), doc_types=("a", "b"), hidden_size=8,
                          num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, char_dim=4, char_channels=4,
                          position_buckets=4, pair_hidden=4, relation_size=2)


@pytest.fixture
def saved(tmp_path):
    """(folder, file, its bytes) of a small model."""
    model = DocExtract.initial(CONFIG, 3)
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    return tmp_path, file, file.read_bytes()


def parts(data):
    """(header, data after it) of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), data[8 + length:]


def entry(begin):
    return {"dtype": "F32", "shape": [], "data_offsets": [begin, begin + 4]}


def assembled(header, rest, pad=0):
    text = json.dumps(header).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + rest


def changed(data, change=None, **head):
    """The file with other `dx` metadata (a key given as None is removed) and a changed header."""
    header, rest = parts(data)
    own = json.loads(header["__metadata__"]["dx"])
    own = {k: v for k, v in (own | head).items() if v is not None}
    header["__metadata__"]["dx"] = json.dumps(own)
    if change:
        rest = change(header, rest) or rest
    return assembled(header, rest)


def test_loaded_is_saved(saved):
    """Also case mod-13: nothing of the heads is lost."""
    folder, file, data = saved
    model = DocExtract.initial(CONFIG, 3)
    for path in (folder, file, str(file)):
        loaded = DocExtract.from_pretrained(path)
        assert loaded.config == CONFIG and loaded.parameters.flat.tobytes() == model.parameters.flat.tobytes()
    assert model.save_pretrained(folder / "new" / "deep") == hashlib.sha256(data).hexdigest()
    assert (folder / "new" / "deep" / "model.safetensors").read_bytes() == data
    assert sorted(p.name for p in folder.iterdir()) == ["model.safetensors", "new"]


def test_the_bytes_are_those_of_the_documentation(tmp_path):
    """docs/docextract-v0.md, "The model file", written out."""
    config = DocExtractConfig.from_json(CONFIG.to_json() | {"num_hidden_layers": 11, "fields": ["é", "total"]})
    model = DocExtract.initial(config, 3)
    model.save_pretrained(tmp_path)
    tensors = model.parameters.to_container()
    head = {"config": config.to_json(), "format": 1, "kind": "docextract",
            "numerics_version": dx_model.below.NUMERICS_VERSION, "tensors": list(tensors)}
    dx = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False).replace("1e-05", "0.00001")
    header, data = {"__metadata__": {"dx": dx}}, b""
    for name in sorted(tensors):
        raw = tensors[name].astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    assert (tmp_path / "model.safetensors").read_bytes() == struct.pack("<Q", len(text)) + text + data


def test_one_file_in_many_processes(saved):
    """Cases io-05, mod-14: equal bytes and equal parameters under five hash seeds."""
    folder, file, data = saved
    code = ("import sys, hashlib; from dx_model.docextract import DocExtract, DocExtractConfig\n"
            "model = DocExtract.from_pretrained(sys.argv[1])\n"
            "again = DocExtract.initial(model.config, 3)\n"
            "print(model.parameters.digest(), again.parameters.digest(), again.save_pretrained(sys.argv[2]))")
    lines = {subprocess.run([sys.executable, "-c", code, str(file), str(folder / f"copy{seed}")], text=True, check=True,
                            capture_output=True, env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout
             for seed in range(5)}
    digest = DocExtract.initial(CONFIG, 3).parameters.digest()
    assert lines == {f"{digest} {digest} {hashlib.sha256(data).hexdigest()}\n"}


def test_a_digest_can_be_asked_for(saved):
    folder, file, data = saved
    DocExtract.from_pretrained(folder, digest=hashlib.sha256(data).hexdigest().upper())
    with pytest.raises(ModelFileError, match="its SHA-256 is [0-9a-f]{64}: expected 00"):
        DocExtract.from_pretrained(folder, digest="00")


def test_other_fields_than_expected_are_listed(saved):
    """Case mod-11."""
    folder, _, _ = saved
    DocExtract.from_pretrained(folder, fields=["total", "date"])
    with pytest.raises(ModelFileError, match="the model's 2 fields are total, date; expected are 3: total, tax, iban; "
                                             "the model lacks tax, iban and has date besides"):
        DocExtract.from_pretrained(folder, fields=["total", "tax", "iban"])
    with pytest.raises(ModelFileError, match="has them in another order"):
        DocExtract.from_pretrained(folder, fields=["date", "total"])


def test_an_older_config_is_not_filled_with_defaults(saved):
    """Case mod-10."""
    _, file, data = saved
    config = CONFIG.to_json()
    for key in ("fields", "num_hidden_layers", "repeated"):
        file.write_bytes(changed(data, config={k: v for k, v in config.items() if k != key}))
        with pytest.raises(ModelFileError, match=f"config lacks the keys {key}: it comes from another version"):
            DocExtract.from_pretrained(file)


@pytest.mark.parametrize("extra", [1, 8, 4096])
def test_trailing_bytes_are_refused(saved, extra):
    """Case io-04."""
    _, file, data = saved
    file.write_bytes(data + b"\0" * extra)
    with pytest.raises(ModelFileError, match=f"{extra} bytes follow the last tensor"):
        DocExtract.from_pretrained(file)


@pytest.mark.parametrize("bad, message", [
    # case io-04: cut by one byte, a header of 2^63 bytes
    (lambda d: d[:-1], "cut short"), (lambda d: d[:100], "cut short"), (lambda d: d[:5], "5 bytes are too few"),
    (lambda d: b"", "0 bytes are too few"), (lambda d: struct.pack("<Q", 2 ** 63) + d[8:], "claims 92233720368547"),
    (lambda d: pickle.dumps({"tag_head": [1.0]}), "cut short, or not a safetensors file"),
    (lambda d: struct.pack("<Q", 4) + b"[[1]", "bad header"), (lambda d: struct.pack("<Q", 2) + b"[]", "not an object"),
    (lambda d: struct.pack("<Q", 2) + b"{}", "not a dx model file"),
    (lambda d: assembled({"__metadata__": {"format": "pt"}}, b""), "not a dx model file"),
    (lambda d: assembled({"__metadata__": {"dx": "{"}}, b""), "bad dx metadata"),
    (lambda d: changed(d, format=2), "format 2: this version reads 1; update dx"),
    (lambda d: changed(d, format=True), "format True"), (lambda d: changed(d, kind="vit"), "holds a 'vit' model"),
    (lambda d: changed(d, numerics_version=10 ** 6), "numerics version 1000000: this version computes"),
    (lambda d: changed(d, numerics_version="1"), "numerics_version is '1'"),
    (lambda d: changed(d, tensors=None), "lacks a part"), (lambda d: changed(d, more=1), "unknown part 'more'"),
    (lambda d: changed(d, config=[1]), "config is not an object"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"dropout": 0.1}), "unknown keys dropout"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"hidden_size": 10 ** 12}), "hidden_size = 1000000000000"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"hidden_size": 16}), r"has shape \(8, 4\): expected \(16, 4\)"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"num_hidden_layers": 10 ** 9}), "num_hidden_layers = 1000000000"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"num_hidden_layers": 2}), "blocks.1.ln1.weight is missing"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"num_hidden_layers": 0}), "blocks.0.ln1.weight does not belong"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"feature_version": 2}), "feature_version = 2"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"fields": "ab"}), "expected a list of names"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"fields": [["a"]]}), "expected non-empty strings"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"layer_norm_eps": "1e-5"}), "layer_norm_eps = '1e-5'"),
    (lambda d: changed(d, config=CONFIG.to_json() | {"repeated": ["tax"]}), "expected names of fields"),
    (lambda d: changed(d, tensors=["a", "a"]), "list of tensors is malformed"),
    (lambda d: changed(d, lambda h, r: h.pop("pair2.bias") and None), "pair2.bias begins|expected|bytes follow"),
    (lambda d: changed(d, lambda h, r: h["pair2.bias"].update(dtype="F16")), "has type F16: expected F32"),
    (lambda d: changed(d, lambda h, r: h["pair2.bias"].update(shape=[3])), r"pair2.bias of shape \(3,\)"),
    (lambda d: changed(d, lambda h, r: h["pair2.bias"].update(shape="ab")), "malformed entry"),
    (lambda d: changed(d, lambda h, r: h["pair2.bias"].update(shape=[0, 2 ** 62, 2 ** 62])), "malformed entry"),
    (lambda d: changed(d, lambda h, r: h["pair2.bias"].update(data_offsets=[0, 8])), "no gap, no overlap|begins at"),
    (lambda d: changed(d, lambda h, r: h.update(extra=entry(len(r))) or r + b"\0" * 4),
     "tensor extra is not in the file's list"),
    (lambda d: changed(d, lambda h, r: r[:400] + struct.pack("<f", float("nan")) + r[404:]), "is not finite"),
    (lambda d: changed(d, lambda h, r: struct.pack("<f", float("inf")) + r[4:]), "is not finite")])
def test_damaged_and_foreign_files_are_refused(saved, bad, message):
    _, file, data = saved
    file.write_bytes(bad(data))
    with pytest.raises(ModelFileError, match=message) as caught:
        DocExtract.from_pretrained(file)
    assert str(file) in str(caught.value)


def test_a_file_in_the_wrong_order_is_refused(saved):
    _, file, data = saved
    names = json.loads(parts(data)[0]["__metadata__"]["dx"])["tensors"]
    file.write_bytes(changed(data, tensors=names[::-1]))
    with pytest.raises(ModelFileError, match="rel_k.bias is not at its place in the model's order"):
        DocExtract.from_pretrained(file)


def test_flipped_bytes_are_named_or_read_as_numbers(saved, rng):
    """Fuzz: a damaged file is refused by a named error, or differs in the value of some weight alone."""
    _, file, data = saved
    start = 8 + struct.unpack("<Q", data[:8])[0]
    refused = 0
    for _ in range(400):
        bad = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, min(len(bad), start + 40)))
            what = int(rng.integers(0, 4))
            if what == 0:
                bad[at] = int(rng.integers(0, 256))
            elif what == 1:
                del bad[at:at + int(rng.integers(1, 9))]
            elif what == 2:
                bad[at:at] = [b"9" * 4000, b"[" * 80, b"1e999", b'"', b"}", b"{" * 99, b"-1"][int(rng.integers(0, 7))]
            else:
                bad = bad[:at + 1]
        file.write_bytes(bytes(bad))
        try:
            DocExtract.from_pretrained(file)
        except ModelFileError as error:
            assert str(file) in str(error)
            refused += 1
    assert refused > 250


def test_data_off_the_four_byte_border_is_copied(saved):
    """Case io-01: a header whose length is no multiple of 4."""
    _, file, data = saved
    header, rest = parts(data)
    for pad in range(4):
        file.write_bytes(assembled(header, rest, pad))
        assert DocExtract.from_pretrained(file).parameters.digest() == DocExtract.initial(CONFIG, 3).parameters.digest()
    assert struct.unpack("<Q", data[:8])[0] % 8 == 0


def test_a_header_of_42854_bytes(tmp_path):
    """Case io-01: one float32 [3] behind a header of 42854 bytes, no multiple of 4, is read by copy."""
    write_container(tmp_path / "f", "test", {}, {"a": np.array([1.5, -2, 3e-45], np.float32)})
    header, rest = parts((tmp_path / "f").read_bytes())
    data = assembled(header, rest, 42854 - len(json.dumps(header).encode()))
    assert struct.unpack("<Q", data[:8])[0] == 42854
    (tmp_path / "f").write_bytes(data)
    _, tensors = read_container(tmp_path / "f", "test")
    assert tensors["a"].tobytes() == np.array([1.5, -2, 3e-45], np.float32).tobytes() and tensors["a"].flags.aligned


def test_views_are_written_element_by_element(tmp_path):
    """Case io-02."""
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    views = {"w": a.T, "v": a[:, ::2], "r": a[::-1]}
    write_container(tmp_path / "f", "test", {}, views)
    config, tensors = read_container(tmp_path / "f", "test")
    assert config == {} and list(tensors) == ["w", "v", "r"]
    for name, view in views.items():
        assert np.array_equal(tensors[name], view) and not tensors[name].flags.writeable


def test_what_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    model = DocExtract.initial(CONFIG, 3)
    model.save_pretrained(tmp_path)
    old = (tmp_path / "model.safetensors").read_bytes()
    model.parameters["tag_head.bias"][0] = np.nan
    with pytest.raises(ValueError, match="tensor tag_head.bias holds a value that is not finite"):
        model.save_pretrained(tmp_path)
    model.parameters["tag_head.bias"][0] = 1
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        model.save_pretrained(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    assert (tmp_path / "model.safetensors").read_bytes() == old


def test_initial_weights_depend_on_seed_name_and_shape_alone():
    base, more = DocExtract.initial(CONFIG, 3), DocExtract.initial(
        DocExtractConfig.from_json(CONFIG.to_json() | {"fields": ["total", "date", "iban"]}), 3)
    for name, array in base.parameters.items():
        if not name.startswith("tag_head"):
            assert array.tobytes() == more.parameters[name].tobytes()
    assert not np.array_equal(base.parameters.flat, DocExtract.initial(CONFIG, 4).parameters.flat)
    assert not base.parameters["char_emb.weight"][0].any() and base.parameters["char_emb.weight"][1:].all()


def test_names_are_exported():
    for name in ("DocExtract", "DocExtractConfig", "ModelFileError"):
        assert hasattr(dx_model, name)


def test_mod_17_the_same_bytes_as_long_as_the_file_is_the_same(tmp_path):
    """Case mod-17: a file pinned by its digest gives the same answer; another answer has another digest."""
    page = dx_model.Page("p", 400, 100, [dx_model.Word(f"w{i}", (40 * i, 5, 40 * i + 30, 15)) for i in range(8)])
    model = DocExtract.initial(DocExtractConfig(fields=("line",), repeated=("line",), max_words=64), 3)
    digest = model.save_pretrained(tmp_path)
    want = dx_model.extract_page(model, page).to_json()
    pinned = DocExtract.from_pretrained(tmp_path, digest=digest)
    assert dx_model.extract_page(pinned, page).to_json() == want
    model.parameters["tag_head.bias"][1] += 1
    assert model.save_pretrained(tmp_path) != digest
    assert dx_model.extract_page(DocExtract.from_pretrained(tmp_path), page).to_json() != want
    with pytest.raises(ModelFileError, match=digest):
        DocExtract.from_pretrained(tmp_path, digest=digest)


def test_io_07_the_digest_of_tensors_has_one_order(tmp_path):
    """Case io-07: the same tensors, given in both orders: the model's order decides, over data, names and shapes."""
    parameters = DocExtract.initial(DocExtractConfig(fields=("a",), max_words=64), 4).parameters
    tensors = parameters.to_container()
    other = type(parameters)(parameters.config)
    other.load_container(dict(reversed(tensors.items())))
    assert list(dict(reversed(tensors.items()))) != list(tensors) and other.digest() == parameters.digest()
    assert DocExtract(other).save_pretrained(tmp_path) == DocExtract(parameters).save_pretrained(tmp_path / "x")
    other["tag_head.bias"][0] += 1
    assert other.digest() != parameters.digest()
