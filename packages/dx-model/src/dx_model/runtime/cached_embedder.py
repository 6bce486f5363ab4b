"""Sentence vectors out of a store: what is there is read, the rest is computed in one call and kept."""
import hashlib
from collections.abc import Iterable

import numpy as np

from ..bert.embedder import Embedder
from ..readout.errors import require
from .keys import LayeredRelease
from .store import StateStore


class CachedEmbedder:
    """An embedder whose vectors are kept in a store under their vector release.

    release : `layered_release` of the embedder's manifest (dx_model.export.embedder_manifest makes one of a folder)

    A vector depends on its text alone, so one from the store has the bits of one computed now, in whatever batch.
    """

    def __init__(self, embedder: Embedder, store: StateStore, release: LayeredRelease):
        self.embedder, self.store, self.release = embedder, store, release

    def _key(self, text, truncation):
        source = hashlib.sha256(f"{truncation}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
        return self.release.vector.key(source)

    def embed(self, texts: Iterable[str], *, truncation: str = "refuse") -> np.ndarray:
        """As `Embedder.embed` of texts (str), with the same bits. Nothing is kept when a text is refused."""
        texts = list(texts)
        for place, text in enumerate(texts):
            require(isinstance(text, str), f"texts[{place}]", text, "a text")
        out = np.empty((len(texts), self.embedder.width), np.float32)
        missing = {}
        for place, text in enumerate(texts):
            found = self.store.get("vector", self._key(text, truncation))
            if found is None:
                missing.setdefault(text, []).append(place)
            else:
                out[place] = found["vector"]
        try:
            vectors = self.embedder.embed(list(missing), truncation=truncation)
        except ValueError:  # names the text by its place among all, not among the missing
            self.embedder.tokenizer.ids(texts, max_length=self.embedder.max_length, truncation=truncation)
            raise
        for vector, (text, places) in zip(vectors, missing.items(), strict=True):
            self.store.put("vector", self._key(text, truncation), self.release.vector.digest(), {"vector": vector})
            out[places] = vector
        return out
