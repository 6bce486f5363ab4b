"""Readouts of representation families: their rows, blocks and gradients, and records with a part exchanged."""
import copy
import dataclasses
import hashlib
from math import erf

import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import lineage as lineages

F32 = np.float32
END, PAD = 2, 0


def refused(call, field):
    with pytest.raises(readout.ReadoutError) as caught:
        call()
    assert caught.value.field == field, str(caught.value)


def table(ids, attention=None, **more):
    attention = [1] * len(ids) if attention is None else attention
    return readout.row_table(attention, [0] * len(ids), ids=ids, **more)


def identity(text):
    return hashlib.sha256(text.encode()).hexdigest()


def lineage(family, *, exported, in_batch=None, kinds=None, **changes):
    """The stages that a family's name promises."""
    kinds = lineages.FAMILIES[family] if kinds is None else kinds
    made = [readout.Stage(kind, ("data-1",), "procedure-1", identity(kind), {
        "general_contrastive": True, "retrieval_contrastive": True, "unsupervised_contrastive": True,
        "mixed_contrastive": bool(in_batch)}.get(kind)) for kind in kinds]
    return readout.Lineage(tuple(made), tuple(exported))


LATENT = [f"latent.{n}" for n in ("latents", "query", "key", "value", "up", "up_bias", "down", "down_bias")]
RECORDS = {
    "retromae": dict(visibility="bidirectional", rows="sequence_row", pool="first", exported_state=["encoder.0"]),
    "dupmae": dict(visibility="bidirectional", rows="sequence_and_content", pool="duplex",
                   exported_state=["encoder.0", "cls.weight", "tokens.weight"]),
    "c-pack": dict(visibility="bidirectional", rows="sequence_row", pool="first", exported_state=["encoder.0"]),
    "e5": dict(rows="end_token", pool="last", query_template="Instruct: find\nQuery: {text}",
               exported_state=["adapter"]),
    "prompteol": dict(rows="prompt_end", pool="last", query_template='"{text}" means in one word:',
                      document_template='"{text}" means in one word:', exported_state=["decoder_weights"]),
    "echo": dict(rows="second_copy", pool="mean", query_template="Rewrite: {text} again: {text}",
                 document_template="Rewrite: {text} again: {text}", exported_state=["weights"]),
    "llm2vec": dict(visibility="bidirectional", rows="content", pool="mean", exported_state=["weights", "adapter"]),
    "nv-embed": dict(visibility="bidirectional", rows="content", pool="latent_attention",
                     exported_state=["weights", *LATENT]),
    "moee": dict(rows="end_token", pool="score_fusion", fusion={"alpha": 0.5, "score_type": "cosine"},
                 exported_state=["hidden_vector", "router_vector"]),
}


def record(family, **changes):
    made = {"family": family, "backbone_sha256": identity("backbone"), "visibility": "causal", "layer": -1,
            "query_template": "{text}", "document_template": "{text}", "normalize": True, "lineage_sha256": None,
            "fusion": None}
    return copy.deepcopy(made | RECORDS[family] | changes)


def admit(family, kinds=None, in_batch=None, **changes):
    """admit_family of the family's record and lineage."""
    made, stages = record(family, **changes), None
    if family in lineages.FAMILIES:
        stages = lineage(family, kinds=kinds, in_batch=in_batch, exported=made["exported_state"])
        made["lineage_sha256"] = stages.digest()
        made["backbone_sha256"] = stages.stages[-1].checkpoint if stages.stages else identity("backbone")
    return readout.admit_family(made, stages)


@pytest.mark.parametrize("family", RECORDS)
def test_records_of_families_are_admitted_whole(family):
    made = admit(family)
    for name in RECORDS[family]:
        assert made[name] == RECORDS[family][name]
    for name in made:
        refused(lambda name=name: readout.admit_family({n: v for n, v in made.items() if n != name}), f"family.{name}")
        refused(lambda name=name: readout.admit_family(made | {name: object}), f"family.{name}")
    refused(lambda: readout.admit_family(made | {"extra": 1}), "family.extra")
    if family in lineages.FAMILIES:
        stages = lineage(family, exported=made["exported_state"])
        refused(lambda: readout.admit_family(made), "family.lineage")
        refused(lambda: readout.admit_family(made | {"lineage_sha256": identity("x")}, stages), "family.lineage_sha256")
        refused(lambda: readout.admit_family(made | {"backbone_sha256": identity("other")}, stages),
                "family.backbone_sha256")
        refused(lambda: readout.admit_family(made | {"exported_state": [*made["exported_state"], "more"]}, stages),
                "family.exported_state")
    else:
        refused(lambda: readout.admit_family(made, readout.Lineage(())), "family.lineage")


def test_e5_reads_the_end_row_under_every_layout():
    """The last visible row, which must hold the end token; the document side has no instruction."""
    for ids, attention, want in (([5, 6, END, PAD, PAD], [1, 1, 1, 0, 0], 2),
                                 ([PAD, PAD, 5, 6, END], [0, 0, 1, 1, 1], 4),
                                 ([5, PAD, END, PAD, PAD], [1, 0, 1, 0, 0], 2)):
        assert readout.end_row(table(ids, attention), END) == want
    refused(lambda: readout.end_row(table([5, 6, 7, PAD, PAD], [1, 1, 1, 0, 0]), END), "rows.ids[2]")
    hidden = np.arange(10, dtype=F32).reshape(1, 5, 2)
    mask = readout.rows_mask([readout.end_row(table([5, 6, END, PAD, PAD], [1, 1, 1, 0, 0]), END)], 5)
    assert readout.pool(hidden, mask, "last").tolist() == [[4, 5]]
    sides = readout.SideTemplates("Instruct: find\nQuery: {text}", "{text}", end="</s>")
    assert sides.render("query", "a b") == "Instruct: find\nQuery: a b</s>"
    assert sides.render("document", "a b") == "a b</s>"
    assert admit("e5")["rows"] == "end_token"
    for change, field in (({"visibility": "bidirectional"}, "visibility"), ({"rows": "content"}, "rows"),
                          ({"document_template": "passage: {text}"}, "document_template")):
        refused(lambda change=change: admit("e5", **change), f"family.{field}")


def test_last_padded_column_is_not_the_end_row():
    """Another substitution of equal width: the last column, the counted row, or a row whose end token was truncated."""
    left = table([PAD, PAD, 5, 6, END], [0, 0, 1, 1, 1])
    assert readout.end_row(left, END) == 4 != int(left.attention.sum()) - 1
    right = table([5, END, PAD], [1, 1, 0])
    assert readout.end_row(right, END) == 1 != len(right) - 1
    refused(lambda: readout.end_row(table([5, 6, 7]), END), "rows.ids[2]")  # the end token was cut off
    refused(lambda: readout.end_row(readout.row_table([1, 1], [0, 0]), END), "rows.ids")
    refused(lambda: readout.end_row(table([END], [0]), END), "rows.selected")


def test_prompteol_reads_the_last_prompt_row():
    prompt = [11, 12, 13]
    assert readout.prompt_end_row(table([5, 6, 11, 12, 13, PAD], [1, 1, 1, 1, 1, 0]), prompt) == 4
    assert readout.prompt_end_row(table([PAD, 5, 11, 12, 13], [0, 1, 1, 1, 1]), prompt) == 4
    refused(lambda: readout.prompt_end_row(table([5, 6, 11, 12]), prompt), "rows.ids")  # truncated
    refused(lambda: readout.prompt_end_row(table([5, 11, 12, 14]), prompt), "rows.ids")  # other prompt bytes
    refused(lambda: readout.prompt_end_row(table([12, 13]), prompt), "rows.ids")
    refused(lambda: admit("prompteol", query_template="{text}"), "family.query_template")


def echo_table(text, cut=None, attention=None):
    """Words of prefix + text + separator + text as rows."""
    rendered, first, second = readout.render_echo(text, "Say: ", " / ")
    offsets, at = [], 0
    for word in rendered.split(" "):
        offsets.append((at, at + len(word)))
        at += len(word) + 1
    offsets = offsets[:cut]
    n = len(offsets)
    made = readout.row_table([1] * n if attention is None else attention, [0] * n, [0] * n, list(range(n)), offsets)
    return rendered, first, second, made


def test_echo_pools_the_second_copy():
    rendered, first, second, made = echo_table("new york city")
    assert rendered[slice(*first)] == rendered[slice(*second)] == "new york city"
    mask = readout.echo_mask(made, first, second)
    assert np.flatnonzero(mask).tolist() == [5, 6, 7]
    assert readout.echo_span_map(made, first, second) == [(1, 5), (2, 6), (3, 7)]
    hidden = np.arange(8, dtype=F32).reshape(1, 8, 1)
    assert readout.pool(hidden, mask[None], "mean").tolist() == [[6]]
    wide = np.concatenate([np.full((1, 3, 1), 99, F32), hidden], 1)  # left padding
    assert readout.pool(wide, np.concatenate([np.zeros(3, bool), mask])[None], "mean").tolist() == [[6]]


def test_truncated_or_hidden_second_copy_is_refused():
    for cut in (5, 6, 7):
        _, first, second, made = echo_table("new york city", cut)
        refused(lambda made=made, first=first, second=second: readout.echo_mask(made, first, second), "echo.second")
    _, first, second, made = echo_table("new york city", attention=[1] * 6 + [0, 1])
    refused(lambda: readout.echo_mask(made, first, second), "echo.second")
    bridging = readout.row_table([1], [0], [0], [0], [(2, 9)])  # a row over both copies
    refused(lambda: readout.echo_mask(bridging, (0, 4), (5, 9)), "echo.second")
    refused(lambda: readout.echo_mask(bridging, (0, 5), (5, 9)), "echo.spans")
    refused(lambda: readout.render_echo(""), "text")


def test_both_copies_pooled_is_refused():
    """Pooling both copies lets rows back in that never saw the whole source."""
    _, first, second, made = echo_table("new york city")
    mask = readout.echo_mask(made, first, second)
    both = made.content & ((made.offsets[:, 0] >= second[0]) | (made.offsets[:, 1] <= first[1]))
    hidden = np.arange(8, dtype=F32).reshape(1, 8, 1)
    assert readout.pool(hidden, both[None], "mean")[0, 0] != readout.pool(hidden, mask[None], "mean")[0, 0]
    refused(lambda: admit("echo", rows="content"), "family.rows")
    refused(lambda: admit("echo", query_template="{text}"), "family.query_template")


def test_llm2vec_means_content_rows_and_keeps_its_lineage():
    made = readout.row_table([1, 1, 1, 1, 0], [1, 0, 0, 1, 1], policy=[1, 1, 1, 1, 1])
    hidden = np.array([[[9], [1], [3], [9], [7]]], F32)
    assert readout.pool(hidden, readout.content_mask([made]), "mean").tolist() == [[2]]
    assert admit("llm2vec")["visibility"] == "bidirectional"
    for name, value in (("visibility", "causal"), ("rows", "end_token"), ("pool", "last")):
        refused(lambda change={name: value}: admit("llm2vec", **change), f"family.{name}")


def test_bidirectional_without_lineage_is_refused():
    whole = lineages.FAMILIES["llm2vec"]
    for kinds in ((), whole[:2], whole[:3], (*whole[:2], whole[3], whole[2])):
        refused(lambda kinds=kinds: admit("llm2vec", kinds=kinds), "lineage.stages")
    refused(lambda: admit("llm2vec", visibility="causal"), "family.visibility")


def test_cpack_is_an_ordered_lineage():
    """Equal architecture and stages of other results are other records."""
    made, again = admit("c-pack"), lineage("c-pack", exported=["encoder.0"])
    other = dataclasses.replace(again.stages[1], checkpoint=identity("other data"))
    changed = readout.Lineage((again.stages[0], other, again.stages[2]), again.exported)
    assert readout.admit_family(made | {"lineage_sha256": changed.digest()}, changed) != made
    refused(lambda: readout.admit_family(made, changed), "family.lineage_sha256")
    whole = lineages.FAMILIES["c-pack"]
    for kinds in ((whole[1], whole[0], whole[2]), (whole[0], whole[2])):
        refused(lambda kinds=kinds: admit("c-pack", kinds=kinds), "lineage.stages")


def latent_oracle(rows, p, heads):
    q, latents = rows @ p["latent.query"].T, p["latent.latents"]
    k, v = latents @ p["latent.key"].T, latents @ p["latent.value"].T
    dk, out = q.shape[1] // heads, []
    for h in range(heads):
        at = slice(h * dk, (h + 1) * dk)
        s = q[:, at] @ k[:, at].T / np.sqrt(dk)
        e = np.exp(s - s.max(1, keepdims=True))
        out.append(e / e.sum(1, keepdims=True) @ v[:, at])
    z = np.concatenate(out, 1) @ p["latent.up"].T + p["latent.up_bias"]
    gelu = z * 0.5 * (1 + np.vectorize(erf)(z / np.sqrt(2)))
    return (gelu @ p["latent.down"].T + p["latent.down_bias"]).mean(0)


def drawn(shapes, rng):
    return {n: (rng.standard_normal(s) / 2).astype(F32) for n, s in shapes.items()}


def check_gradients(forward, value, hidden, mask, p, dy, dhidden, dparameters):
    """Every gradient against central differences of a float64 formula value(hidden, parameters) → (B, width)."""
    exact = {n: v.astype(float) for n, v in p.items()}
    assert np.abs(value(hidden.astype(float), exact) - forward).max() < 3e-6

    def slope(change):
        ends = []
        for h in (1e-6, -1e-6):
            x, q = hidden.astype(float), {n: v.copy() for n, v in exact.items()}
            change(x, q, h)
            ends.append((value(x, q) * dy).sum())
        return (ends[0] - ends[1]) / 2e-6

    for i in np.ndindex(hidden.shape):
        def change(x, q, h, i=i):
            x[i] += h
        assert abs(slope(change) - dhidden[i]) < 3e-5
    assert dparameters.keys() == p.keys()
    for n, array in p.items():
        for i in np.ndindex(array.shape):
            def change(x, q, h, n=n, i=i):
                q[n][i] += h
            assert abs(slope(change) - dparameters[n][i]) < 3e-5, (n, i)
    assert not dhidden[~mask].any()


@pytest.mark.parametrize("heads", [1, 2])
def test_nv_embed_latent_attention(heads):
    """Rows query the trained dictionary, then the MLP, then the masked mean; every gradient."""
    rng = np.random.default_rng(3)
    pooling = readout.Pooling((readout.LatentAttention(3, 4, 5, heads),))
    p = drawn(pooling.parameter_shapes(6), rng)
    hidden = rng.standard_normal((2, 4, 6)).astype(F32)
    mask = np.array([[0, 1, 1, 0], [1, 1, 1, 1]], bool)  # instruction rows stay out of the mean
    pooled = pooling.forward(hidden, mask, p)
    dy = rng.standard_normal((2, 6)).astype(F32)
    g = pooling.backward(pooled, dy)

    def value(x, q):
        return np.stack([latent_oracle(x[b][mask[b]], q, heads) for b in range(2)])
    check_gradients(pooled.vectors, value, hidden, mask, p, dy, g.hidden, g.parameters)
    wide = np.concatenate([np.full((2, 7, 6), np.nan, F32), hidden], 1)
    left = pooling.forward(wide, np.concatenate([np.zeros((2, 7), bool), mask], 1), p)
    assert left.vectors.tobytes() == pooled.vectors.tobytes()
    for b in range(2):
        assert pooling.forward(hidden[b:b + 1], mask[b:b + 1], p).vectors.tobytes() == pooled.vectors[b:b + 1].tobytes()
    back = pooling.backward(left, dy)
    assert all(back.parameters[n].tobytes() == g.parameters[n].tobytes() for n in p)


def test_exchanged_token_and_latent_roles_are_another_readout():
    """Latents as queries over the rows fit the shapes too, and give other vectors."""
    rng = np.random.default_rng(4)
    pooling = readout.Pooling((readout.LatentAttention(4, 6, 5),))
    p = drawn(pooling.parameter_shapes(6), rng)
    hidden = rng.standard_normal((1, 4, 6)).astype(F32)
    mask = np.ones((1, 4), bool)
    swapped = p | {"latent.latents": np.ascontiguousarray(hidden[0])}
    got = pooling.forward(p["latent.latents"][None], mask, swapped).vectors
    assert got.shape == (1, 6) and np.abs(got - pooling.forward(hidden, mask, p).vectors).max() > 1e-3
    refused(lambda: readout.LatentAttention(3, 5, 4, 2), "readout.latent.heads")
    for tensor in ("latent.latents", "latent.down"):
        state = [s for s in RECORDS["nv-embed"]["exported_state"] if s != tensor]
        refused(lambda state=state: admit("nv-embed", exported_state=state),
                "family.exported_state")


def test_same_class_negatives_in_the_mixed_stage_are_refused():
    refused(lambda: admit("nv-embed", in_batch=True), "lineage.stages[2].in_batch_negatives")


@pytest.mark.parametrize("aggregate", ["max", "mean"])
def test_duplex_vector_has_two_routes(aggregate):
    rng = np.random.default_rng(5)
    duplex = readout.Duplex(2, 3, aggregate)
    p = drawn(duplex.parameter_shapes(4), rng)
    hidden = rng.standard_normal((2, 5, 4)).astype(F32)
    tables = [readout.row_table([1, 1, 1, 1, 0], [1, 0, 0, 1, 1]), readout.row_table([0, 1, 1, 1, 1], [1, 1, 0, 0, 0])]
    first, content = readout.sequence_row_mask(tables), readout.content_mask(tables)
    vectors, saved = duplex.forward(hidden, first, content, p)
    dy = rng.standard_normal((2, 5)).astype(F32)
    dhidden, dp = duplex.backward(saved, dy)

    def value(x, q):
        rows = x @ q["tokens.weight"].T + q["tokens.bias"]
        reduce = {"max": lambda r: r.max(0), "mean": lambda r: r.mean(0)}[aggregate]
        return np.stack([np.concatenate([x[b][first[b]][0] @ q["cls.weight"].T + q["cls.bias"],
                                         reduce(rows[b][content[b]])]) for b in range(2)])
    check_gradients(vectors, value, hidden, first | content, p, dy, dhidden, dp)


def test_one_route_of_the_duplex_vector_is_refused():
    duplex, hidden = readout.Duplex(2, 3), np.ones((1, 2, 4), F32)
    p = drawn(duplex.parameter_shapes(4), np.random.default_rng(0))
    masks = np.array([[True, False]]), np.array([[False, True]])
    for route in ("cls", "tokens"):
        one = {n: v for n, v in p.items() if not n.startswith(route)}
        refused(lambda one=one: duplex.forward(hidden, *masks, one), f"parameters.{route}.weight")
        state = [s for s in RECORDS["dupmae"]["exported_state"] if not s.startswith(route)]
        refused(lambda state=state: admit("dupmae", exported_state=state),
                "family.exported_state")
    refused(lambda: duplex.forward(hidden, *masks, p | {"other.weight": p["cls.weight"]}), "parameters.other.weight")
    refused(lambda: duplex.forward(hidden, masks[0], masks[0] & False, p), "rows.selected")
    refused(lambda: admit("dupmae", rows="sequence_row"), "family.rows")
    refused(lambda: readout.sequence_row_mask([readout.row_table([1, 1], [0, 0])]), "rows[0].special[0]")


def test_training_decoder_in_the_release_is_refused():
    for exported in (["encoder.0", "decoder.0"], ["sampler.0"]):
        refused(lambda exported=exported: admit("retromae", exported_state=exported), "lineage.exported")


def test_query_instruction_on_documents_is_refused():
    sides = readout.SideTemplates("query: {text}", "passage: {text}")
    sides.admit("document", "passage: {text}")
    refused(lambda: sides.admit("document", "query: {text}"), "input.template.document")
    refused(lambda: sides.render("passage", "x"), "side")
    refused(lambda: readout.SideTemplates("query: ", "{text}"), "input.template.query")
    assert sides.render("query", "{text}") == "query: {text}"  # a source that looks like the place is left alone


def test_moee_concatenates_or_fuses():
    """One wider vector, or two spaces and a coefficient: equal only after an explicit change of scale."""
    rng = np.random.default_rng(6)
    hs, rw = rng.standard_normal((2, 5)).astype(F32), rng.standard_normal((2, 4)).astype(F32)
    both = readout.moee_concatenation(hs, rw)
    assert both.shape == (2, 9) and np.array_equal(both[:, 5:], rw)
    layers = [np.array([.25, .75], F32), np.array([.5, .5], F32)]
    assert readout.router_vector(layers, [0, 1]).tolist() == [.25, .75, .5, .5]
    for order in ([1, 0], [0, 0], [0]):
        refused(lambda order=order: readout.router_vector(layers, order), "moee.layers")
    alpha = 0.25

    def dot(a, b):
        return F32((a.astype(float) * b).sum())
    fused = readout.FusedScores(np.array([dot(hs[0], hs[1])]), np.array([dot(rw[0], rw[1])]), alpha, "dot")
    assert fused.scores[0] == fused.hidden[0] + F32(alpha) * fused.router[0]
    assert abs(dot(both[0], both[1]) - fused.scores[0]) > 1e-2
    scaled = readout.moee_concatenation(hs, rw * F32(0.5))  # the root of alpha on each side
    assert abs(dot(scaled[0], scaled[1]) - fused.scores[0]) < 1e-5
    refused(lambda: readout.moee_concatenation(hs, rw[:1]), "router")
    refused(lambda: readout.FusedScores(fused.hidden, fused.router, alpha, "logit"), "score.type")
    refused(lambda: readout.FusedScores(fused.hidden, fused.router, float("nan"), "dot"), "moee.alpha")


def test_fusion_stored_as_one_vector_is_refused():
    fused = readout.FusedScores(np.ones(2, F32), np.ones(2, F32), 0.5, "cosine")
    refused(fused.as_vector, "moee.export")
    one = record("moee", exported_state=["concatenated_vector"])
    refused(lambda: readout.admit_family(one), "family.exported_state")
    refused(lambda: admit("moee", fusion=None), "family.fusion")
    refused(lambda: admit("moee", pool="concatenation"), "family.fusion")
    other = record("e5", pool="score_fusion", fusion=RECORDS["moee"]["fusion"])
    refused(lambda: readout.admit_family(other), "family.pool")
