"""Sentence embeddings: tokenizer, encoder, pooling of the rows, unit length; the folders of sentence-transformers."""
from pathlib import Path

import numpy as np

from ..below import ieee_mode, l2_normalize_forward, pool_sum_forward
from ..container import ModelFileError
from .checkpoints import read_checkpoint, read_json
from .model import Bert
from .tokenizer import Tokenizer

ROWS = 512  # rows of one packed pass: enough for full tiles, few enough for the caches
LEAST_NORM = 1e-12  # of the division by the length, as the common implementations have it
POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
IGNORED = ("word_embedding_dimension", "include_prompt")  # keys of a pooling's config that choose nothing here


class Embedder:
    """Texts to vectors.

    Parameters
    ----------
    model : Bert; tokenizer : Tokenizer
    max_length : most tokens of a text, inserted ones included
    pooling : "mean" of all rows, inserted ones included, or "first" row
    normalize : vectors of length 1
    """

    def __init__(self, model: Bert, tokenizer: Tokenizer, *, max_length: int = 256, pooling: str = "mean",
                 normalize: bool = True):
        if pooling not in POOLING.values():
            raise ValueError(f"pooling = {pooling!r}: expected one of {', '.join(map(repr, POOLING.values()))}")
        most = model.config.max_position_embeddings
        if type(max_length) is not int or not 3 <= max_length <= most:
            raise ValueError(f"max_length = {max_length!r}: expected 3 to {most}")
        self.model, self.tokenizer = model, tokenizer
        self.max_length, self.pooling, self.normalize = max_length, pooling, normalize

    @classmethod
    def from_pretrained(cls, folder) -> "Embedder":
        """The embedder of a folder of sentence-transformers (modules.json, the encoder's files, pooling) or of a plain
        checkpoint with tokenizer.json, which is pooled by the mean and normalised.

        Raises ModelFileError for modules or settings that this class does not have: they are refused, not left out.
        """
        folder = Path(folder)
        pooling, normalize, length = "mean", True, None
        if (folder / "modules.json").exists():
            pooling, normalize, length = _settings(folder)
        model = Bert(read_checkpoint(folder)[0])
        length = model.config.max_position_embeddings if length is None else length
        return cls(model, Tokenizer(folder / "tokenizer.json"), max_length=length, pooling=pooling, normalize=normalize)

    @property
    def width(self) -> int:
        """Numbers of one vector."""
        return self.model.config.hidden_size

    @ieee_mode()
    def embed(self, texts, *, truncation: str = "refuse") -> np.ndarray:
        """Vectors (texts, width), float32, in the order of the texts. A vector depends on its text alone: not on the
        others, their order, or the number of threads.

        texts : iterable of str; truncation : as Tokenizer: "refuse" texts that are too long, or cut them at the "end"
        """
        tokens = self.tokenizer.ids(texts, max_length=self.max_length, truncation=truncation)
        out = np.empty((len(tokens), self.width), np.float32)
        for pack in packs([len(ids) for ids, _ in tokens]):
            self._embed_pack([tokens[i] for i in pack], out, pack)
        return out

    def _embed_pack(self, tokens, out, places):
        starts = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(ids) for ids, _ in tokens], out=starts[1:])  # exact: whole numbers
        flat = np.fromiter((i for ids, _ in tokens for i in ids), np.int32, starts[-1])
        types = np.fromiter((t for _, own in tokens for t in own), np.int32, starts[-1])
        rows = self.model.forward(flat, starts, types)
        vectors = np.empty((len(tokens), self.width), np.float32)
        if self.pooling == "mean":
            pool_sum_forward(rows, None, starts, vectors, divisors=np.diff(starts).astype(np.float32))
        else:
            vectors[...] = rows[starts[:-1]]
        if self.normalize:
            l2_normalize_forward(vectors, vectors, np.empty(len(vectors), np.float32), epsilon=LEAST_NORM)
        out[places] = vectors


def packs(lengths, most: int = ROWS) -> list[list[int]]:
    """Places of texts in packs of at most `most` rows (a longer text alone), the longest texts first, so that a pack
    holds texts of like length; every place once."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    out, room = [], 0
    for place in order:
        if not out or lengths[place] > room:
            out.append([])
            room = most
        out[-1].append(place)
        room -= lengths[place]
    return out


def _settings(folder):
    """(pooling, normalize, max_length or None) of a folder's modules.json."""
    from .. import strict_json

    path = folder / "modules.json"
    try:
        modules = strict_json.loads(path.read_text(encoding="utf-8"))
        kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
        paths = [module["path"] for module in modules]
    except (UnicodeDecodeError, strict_json.StrictJSONError, TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(f"{path}: expected a list of modules with type and path ({error})") from None
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or paths[0]:
        raise ModelFileError(f"{path}: the modules are {', '.join(kinds)}: expected Transformer, Pooling and perhaps "
                             "Normalize")
    where = folder / paths[1] / "config.json"
    if folder.resolve() not in where.resolve().parents:
        raise ModelFileError(f"{path}: the path {paths[1]!r} leads out of the folder")
    settings = read_json(where)
    chosen = [name for name, value in settings.items() if value is True and name not in IGNORED]
    if len(chosen) != 1 or chosen[0] not in POOLING:
        raise ModelFileError(f"{where}: the pooling is {' + '.join(chosen) or 'none'}: expected one of "
                             f"{', '.join(POOLING)}")
    length, lower = None, folder / "sentence_bert_config.json"
    if lower.exists():
        length = read_json(lower).get("max_seq_length")
        if length is not None and type(length) is not int:
            raise ModelFileError(f"{lower}: max_seq_length is {length!r}: expected a whole number or null")
    return POOLING[chosen[0]], kinds[-1] == "Normalize", length
