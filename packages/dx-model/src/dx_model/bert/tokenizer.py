"""Sub-word tokenizers: texts to token ids with all that identifies a row, through the library `tokenizers` (extra)."""
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..container import ModelFileError
from ..readout.rows import RowTable, row_table

INSTALL = "tokenizing needs the library tokenizers: pip install 'dx-model[tokenizers]'"
SPACES = frozenset(" \t\n\r\u00a0\u3000")
TRUNCATION = ("refuse", "end")


def _parts(text):
    return text if isinstance(text, tuple) else (text,)


@dataclass(frozen=True)
class Encoded:
    """One text, or pair of texts, as tokens.

    ids, type_ids : (n,) int32
    rows : RowTable: offsets into the texts, words, sequences, inserted tokens
    dropped : how many tokens truncation left out
    """

    ids: np.ndarray
    type_ids: np.ndarray
    rows: RowTable
    dropped: int = 0

    def __len__(self):
        return len(self.ids)


class Tokenizer:
    """A tokenizer.json with its padding and truncation turned off: what is cut is said, not set in a file.

    Safe to use from several threads.
    """

    def __init__(self, path):
        try:
            import tokenizers
        except ImportError:
            raise ModuleNotFoundError(INSTALL) from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(Path(path).read_text(encoding="utf-8"))
        except OSError:
            raise
        except Exception as error:  # the library raises plain Exception for a file it cannot use
            raise ModelFileError(f"{path}: not a tokenizer.json that tokenizers {tokenizers.__version__} can use: "
                                 f"{error}") from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._library, self._cut = tokenizers, {}
        self.inserted = self._tokenizer.num_special_tokens_to_add(False)

    def __call__(self, texts, *, max_length: int, truncation: str = "refuse") -> list[Encoded]:
        """The tokens of texts (str), or of pairs (tuples of two str).

        Parameters
        ----------
        max_length : most tokens of one text or pair, inserted ones included
        truncation : "refuse": ValueError for a longer one; "end": its last tokens are left out, of a pair the longer
            text's, inserted tokens stay

        Raises ValueError: something that is no text (its place is named), or that is too long
        """
        texts = list(texts)
        encoded = self._encode(texts, max_length, truncation)
        out = []
        for (one, dropped), text in zip(encoded, texts):
            ids, types = np.array(one.ids, np.int32), np.array(one.type_ids, np.int32)
            special = np.array(one.special_tokens_mask, np.bool_)
            offsets = [None if s else o for o, s in zip(one.offsets, special)]
            sequence = [None if s else q for q, s in zip(one.sequence_ids, special)]
            found = one.word_ids if self._tokenizer.pre_tokenizer is not None else _spaced(_parts(text), one)
            words = [None if s else w for w, s in zip(found, special)]
            table = row_table(np.ones(len(ids), np.bool_), special, sequence, words, offsets, type_ids=types, ids=ids)
            out.append(Encoded(ids, types, table, dropped))
        return out

    def ids(self, texts, *, max_length: int, truncation: str = "refuse") -> list[tuple[list[int], list[int]]]:
        """(ids, type_ids) of each text or pair: `__call__` without the row tables, for embedding many texts."""
        return [(one.ids, one.type_ids) for one, _ in self._encode(texts, max_length, truncation)]

    def _encode(self, texts, max_length, truncation):
        texts = list(texts)
        if truncation not in TRUNCATION:
            raise ValueError(f"truncation = {truncation!r}: expected one of {', '.join(map(repr, TRUNCATION))}")
        if type(max_length) is not int or max_length <= self.inserted:
            raise ValueError(f"max_length = {max_length!r}: expected more than the {self.inserted} inserted tokens")
        for place, text in enumerate(texts):
            parts = _parts(text)
            if len(parts) > 2 or not all(isinstance(part, str) for part in parts):
                raise ValueError(f"texts[{place}] is {str(text)[:40]!r}: expected a text or a pair of texts")
            if any("\ud800" <= c <= "\udfff" for part in parts for c in (part if not part.isascii() else "")):
                raise ValueError(f"texts[{place}] holds a lone surrogate: it is no text")
        found = []
        for place, one in enumerate(self._tokenizer.encode_batch(texts) if texts else ()):
            dropped = max(len(one.ids) - max_length, 0)
            if dropped and truncation == "refuse":
                raise ValueError(f"texts[{place}] has {len(one.ids)} tokens: expected at most {max_length} (truncation="
                                 "'end' cuts it, or cut it into windows)")
            found.append((self._cutting(max_length).encode(*_parts(texts[place])) if dropped else one, dropped))
        return found

    def _cutting(self, max_length):
        """A copy of the tokenizer that cuts at a length; one for each length, since the setting is the object's."""
        found = self._cut.get(max_length)
        if found is None:
            found = self._library.Tokenizer.from_str(self._tokenizer.to_str())
            found.enable_truncation(max_length, strategy="longest_first")
            self._cut[max_length] = found
        return found


def _spaced(parts, one):
    """The word of each token by white space: a tokenizer that does not part words calls a whole text one word."""
    numbers = []
    for text in parts:
        own, count = [], 0
        for i, c in enumerate(text):
            own.append(count)
            count += c not in SPACES and (i + 1 == len(text) or text[i + 1] in SPACES)
        numbers.append(own)
    return [None if q is None else numbers[q][begin] if begin < len(numbers[q]) else None
            for q, (begin, _) in zip(one.sequence_ids, one.offsets)]
