"""Requests: admitted whole, or refused with the first field that the release does not answer."""
from dataclasses import replace

import pytest
from dx_model.readout import Manifest
from dx_model.runtime import ReadoutRequest, ServedRelease, WindowPolicy, admit_request, served_release
from readout_record import CLASSES, record, refused

WINDOWS = WindowPolicy(128, 32, "center", "mean_logits")


def served(**options):
    options = {"window_policy": WINDOWS, "window_aggregation": "mean_logits"} | options
    return served_release(Manifest(record()), ("left", "right"), **options)


def request(release, **changes):
    made = ReadoutRequest(release.id, release.tokenizer_revision, release.output_kind, "left", 512, True, True,
                          release.normalization_stage)
    return replace(made, **changes)


def test_what_the_release_answers_is_admitted():
    release = served()
    assert release.normalization_stage == "pooled" and release.exported_max_length == 512
    admit_request(request(release), release)
    admit_request(request(release, requires_overflow=False, offsets_available=False), release)
    classes = served_release(Manifest(record(**CLASSES)), ("right",))
    admit_request(ReadoutRequest(classes.id, classes.tokenizer_revision, "classification", "right", 8), classes)
    assert classes.normalization_stage is None


@pytest.mark.parametrize("field, value", [
    ("release_id", "0" * 64), ("tokenizer_revision", "0" * 64), ("output_kind", "token_vectors"),
    ("padding_side", "both"), ("max_length", 513), ("max_length", 0), ("offsets_available", False),
    ("normalization_stage", "normalize_each"), ("normalization_stage", None)])
def test_every_field_is_checked(field, value):
    release = served()
    refused(lambda: admit_request(request(release, **{field: value}), release), f"request.{field}")


def test_sources_that_are_too_long_need_windows_an_aggregation_and_offsets():
    for missing in ("window_policy", "window_aggregation"):
        release = served(**{missing: None})
        refused(lambda release=release: admit_request(request(release), release), "request.requires_overflow")
        admit_request(request(release, requires_overflow=False), release)


def test_a_release_is_checked_too():
    refused(lambda: ServedRelease("r", "t", "embedding", ("right",), 8), "release.normalization_stage")
    refused(lambda: served(window_policy=WindowPolicy(513, 0, "first", "x")), "release.window_policy.rows")
