"""Requests admitted against the release that is to answer them, before anything is computed."""
from collections.abc import Sequence
from dataclasses import dataclass

from ..readout.errors import require
from ..readout.manifest import Manifest
from .windows import WindowPolicy

NORMALIZED_KINDS = ("embedding", "token_vectors")


@dataclass(frozen=True)
class ServedRelease:
    """What a release offers at runtime.

    id, tokenizer_revision, output_kind : its identity, from the manifest by `served_release`
    tested_padding_sides : sides on which padding invariance was shown
    exported_max_length : most rows of one sequence
    window_policy, window_aggregation : how longer sources are cut and what their windows become; None: not at all
    normalization_stage : where vectors get length 1 ("none", "pooled", "normalize_each", …); of embeddings and token
        vectors
    """

    id: str
    tokenizer_revision: str
    output_kind: str
    tested_padding_sides: tuple[str, ...]
    exported_max_length: int
    window_policy: WindowPolicy | None = None
    window_aggregation: str | None = None
    normalization_stage: str | None = None

    def __post_init__(self):
        require(self.output_kind not in NORMALIZED_KINDS or bool(self.normalization_stage),
                "release.normalization_stage", self.normalization_stage, f"the stage: {self.output_kind} has one")
        require(self.window_policy is None or self.window_policy.rows <= self.exported_max_length,
                "release.window_policy.rows", None if self.window_policy is None else self.window_policy.rows,
                f"{self.exported_max_length} or fewer")


@dataclass(frozen=True)
class ReadoutRequest:
    """What a caller asks for; each field is checked against the release.

    max_length : rows of the longest sequence · requires_overflow : sources are longer than that ·
    offsets_available : the tokenizer gave offsets
    """

    release_id: str
    tokenizer_revision: str
    output_kind: str
    padding_side: str
    max_length: int
    requires_overflow: bool = False
    offsets_available: bool = False
    normalization_stage: str | None = None


def served_release(manifest: Manifest, tested_padding_sides: Sequence[str], **runtime) -> ServedRelease:
    """The served form of a manifest; runtime: window_policy, window_aggregation, normalization_stage (default: "pooled"
    or "none" as the manifest normalises)."""
    stage = "pooled" if manifest["readout.normalize"]["kind"] == "l2" else "none"
    kind = manifest["output.kind"]
    if kind in NORMALIZED_KINDS:
        runtime.setdefault("normalization_stage", stage)
    return ServedRelease(manifest.content_id, manifest["input.tokenizer_sha256"], kind, tuple(tested_padding_sides),
                         manifest["input.max_length"], **runtime)


def admit_request(request: ReadoutRequest, release: ServedRelease) -> None:
    """ReadoutError naming the first field of the request that the release does not answer."""
    for name, want in (("release_id", release.id), ("tokenizer_revision", release.tokenizer_revision),
                       ("output_kind", release.output_kind)):
        require(getattr(request, name) == want, f"request.{name}", getattr(request, name), repr(want))
    require(request.padding_side in release.tested_padding_sides, "request.padding_side", request.padding_side,
            f"a side that was tested: {', '.join(release.tested_padding_sides) or 'none was'}")
    require(0 < request.max_length <= release.exported_max_length, "request.max_length", request.max_length,
            f"1..{release.exported_max_length}")
    if request.requires_overflow:
        require(release.window_policy is not None, "request.requires_overflow", True,
                "False: the release has no window policy")
        require(release.window_aggregation is not None, "request.requires_overflow", True,
                "False: the release does not say what windows' results become")
        require(request.offsets_available, "request.offsets_available", False,
                "True: windows go back to the source by offsets")
    if release.output_kind in NORMALIZED_KINDS:
        require(request.normalization_stage == release.normalization_stage, "request.normalization_stage",
                request.normalization_stage, repr(release.normalization_stage))
