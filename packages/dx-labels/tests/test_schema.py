"""Schemas: both forms, one digest, every rule named."""
import json

import pytest
from dx_labels.schema import Schema, SchemaError, read_schema, schema_from_json

TOML = """
name = "receipt"
decimal = "."
[[fields]]
name = "company"
hints = ["the shop"]
[[fields]]
name = "total"
type = "amount"
nullable = false
decimal = ","
"""
JSON = {"name": "receipt", "fields": [{"name": "company", "decimal": ".", "hints": ["the shop"], "repeated": False},
                                      {"type": "amount", "name": "total", "nullable": False, "decimal": ","}]}


def test_toml_and_json_give_one_digest(tmp_path):
    (tmp_path / "a.toml").write_text(TOML)
    (tmp_path / "b.json").write_text("\ufeff" + json.dumps(JSON), encoding="utf-8")
    a, b = read_schema(tmp_path / "a.toml"), read_schema(tmp_path / "b.json")
    assert a == b and a.digest == b.digest and a.names == ("company", "total")
    assert schema_from_json(a.to_json()).digest == a.digest
    assert schema_from_json({"fields": ["company"]}).digest != a.digest


@pytest.mark.parametrize("value, words", {
    "no fields": ({"name": "x"}, "fields is missing"), "empty": ({"fields": []}, "fields is missing"),
    "no object": ([], "expected an object"), "key": ({"fields": ["a"], "feilds": 1}, "did you mean 'fields'"),
    "field key": ({"fields": [{"name": "a", "nulable": True}]}, "did you mean 'nullable'"),
    "type": ({"fields": [{"name": "a", "type": "ammount"}]}, "field 0 ('a'): type is 'ammount' (did you mean 'amount'"),
    "twice": ({"fields": ["a", "b", "a"]}, "field 2 ('a'): the name stands already at field 0"),
    "no name": ({"fields": [{"type": "text"}]}, "name is None"), "blank": ({"fields": [" "]}, "name is ' '"),
    "bool": ({"fields": [{"name": "a", "repeated": 1}]}, "repeated is 1"),
    "hints": ({"fields": [{"name": "a", "hints": "x"}]}, "hints is 'x'"),
    "order": ({"fields": ["a"], "date_order": "myd"}, "date_order is 'myd'"),
    "many": ({"fields": [f"f{i}" for i in range(61)]}, "61 fields: expected at most 60"),
}.values())
def test_errors_name_field_key_value_and_rule(value, words):
    with pytest.raises(SchemaError) as error:
        schema_from_json(value)
    assert words in str(error.value)


def test_sixty_fields_and_lookup():
    schema = schema_from_json({"fields": [f"field_{i}" for i in range(60)]})
    assert isinstance(schema, Schema) and len(schema.names) == 60
    with pytest.raises(KeyError, match="did you mean 'field_7'"):
        schema.field("feld_7")


@pytest.mark.parametrize("name, data", [("a.json", b"{"), ("a.toml", b"x = "), ("a.json", b"\xff"),
                                        ("a.json", b'{"fields": ["a"], "fields": []}')])
def test_a_broken_file_is_named(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SchemaError, match=name):
        read_schema(tmp_path / name)
