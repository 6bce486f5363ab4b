"""Augmentation of examples: array transformations whose randomness is a function of (seed, epoch, example id) alone.

Every draw is a number of a counter-based SplitMix64 stream named after what it is for, so an example looks the same
whatever batch, thread or resumed run it is met in. Features and pair geometry stay those of the page as it is.
"""
import dataclasses

import numpy as np

from .below import distinct_rows, normal32, positions, substream, uniform64

SCALE, SHIFT, JITTER = 0.1, 0.05, 0.005  # of the page's content extent, at strength 1
DIGITS_SHARE, NOISE_SHARE, MASK_SHARE = 0.3, 0.02, 0.02
FIRST_DIGIT, PRINTABLE = 17, 95  # character ids: U+0020..U+007E have 1..95
MASK_ID = PRINTABLE  # "~", which pages hardly use


class Draws:
    """The random numbers of one example in one epoch, by purpose."""

    def __init__(self, seed: int, epoch: int, example: str):
        self._key = substream(substream(seed, f"augment {epoch}"), example)

    def uniform(self, purpose: str, count: int) -> np.ndarray:
        """Multiples of 2^-53 in [0, 1), float64 (count,)."""
        out = np.empty(count)
        uniform64(substream(self._key, purpose), out)
        return out

    def normal(self, purpose: str, shape) -> np.ndarray:
        """Standard normal numbers, float32."""
        out = np.empty(shape, np.float32)
        normal32(substream(self._key, purpose), out)
        return out


def choose_variant(example, seed: int, epoch: int, share: float):
    """The example, or with probability `share` one of its variants, each equally often."""
    if not example.variants or share == 0:
        return example
    take, which = Draws(seed, epoch, example.id).uniform("variant", 2).tolist()
    if take >= share:
        return example
    page, targets = example.variants[int(which * len(example.variants))]
    return dataclasses.replace(example, page=page, targets=targets)


def augment(example, seed: int, epoch: int, strength: float, position_buckets: int):
    """The example with its page moved and its characters disturbed; `strength` (0 to 1) scales sizes and shares.

    Boxes (position tables only): each axis scaled by 1 + 0.1 u and shifted by 0.05 u, u uniform in [-1, 1), and every
    edge moved by 0.005 z, z normal, all times strength. Characters: with probability 0.3 strength the ten digits are
    permuted over the whole page; each character becomes one of the 95 printable ones with probability 0.02 strength;
    each row's characters all become the mask with probability 0.02 strength.
    """
    if strength == 0 or not len(example.page.features):
        return example
    draws, page = Draws(seed, epoch, example.id), example.page
    characters, inverse = _characters(page, draws, strength)
    table_ids = np.empty_like(page.table_ids)
    table_ids[0] = inverse
    positions(_moved(page.relative, draws, strength), table_ids[1:], size=position_buckets)
    return dataclasses.replace(example, page=dataclasses.replace(page, characters=characters, table_ids=table_ids))


def _moved(relative, draws, strength):
    """Box edges after scale, shift and jitter, in binary64."""
    scale, shift = (2.0 * draws.uniform("page", 4) - 1.0).reshape(2, 2)
    scale, shift = 1.0 + SCALE * strength * scale, SHIFT * strength * shift
    jitter = draws.normal("jitter", relative.shape).astype(np.float64)
    return relative * scale[[0, 1, 0, 1]] + shift[[0, 1, 0, 1]] + JITTER * strength * jitter


def _characters(page, draws, strength):
    table = page.characters
    digits = draws.uniform("digits", 11)
    if digits[0] < DIGITS_SHARE * strength:
        mapping = np.arange(int(table.max()) + 1 + FIRST_DIGIT + 10, dtype=np.int32)
        mapping[FIRST_DIGIT:FIRST_DIGIT + 10] = FIRST_DIGIT + np.argsort(digits[1:], kind="stable")
        table = mapping[table]
    ids = table[page.inverse]
    there = ids != 0
    noise = draws.uniform("noise", 2 * ids.size).reshape(2, *ids.shape)
    printable = (1.0 + np.floor(noise[1] * PRINTABLE)).astype(np.int32)
    ids = np.where(there & (noise[0] < NOISE_SHARE * strength), printable, ids)
    masked = draws.uniform("mask", len(ids)) < MASK_SHARE * strength
    ids = np.where(there & masked[:, None], np.int32(MASK_ID), ids)
    distinct, inverse = np.empty_like(ids), np.empty(len(ids), np.int32)
    count = distinct_rows(np.ascontiguousarray(ids), distinct, inverse)
    return distinct[:count], inverse
