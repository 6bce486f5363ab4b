"""Masked reconstruction through one sentence row: two views of a text, and a decoder that no release holds."""
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .below import Blocks, CausalConfig, CausalEncoder, ieee_mode, language_loss, substream, uniform64
from .trainable import ContractError

DECODER, HEAD = "decoder.", "language_head.weight"


def masked_places(length: int, rate: float, *, seed: int, example: str, step: int, view: str) -> np.ndarray:
    """int64 places from 1 on (0 is the sentence row) that a view masks: those whose number in the stream (seed,
    example, step, view) is below the rate; the place of the smallest number when there would be none."""
    if not 0 < rate < 1 or length < 2:
        raise ValueError(f"rate = {rate}, length = {length}: expected a rate between 0 and 1 and at least 2 tokens")
    draws = np.empty(length - 1)
    uniform64(substream(substream(seed, example), f"mask {view} {step}"), draws)
    places = np.flatnonzero(draws < rate)
    return (places if len(places) else np.array([int(draws.argmin())])) + 1


@dataclass(frozen=True)
class RetroMAESettings:
    """mask_id : token that stands at masked places · encoder_rate, decoder_rate : shares that the two views mask; the
    decoder's is the larger, so that it has to use the sentence row · seed"""

    mask_id: int
    encoder_rate: float = 0.3
    decoder_rate: float = 0.5
    seed: int = 0

    def __post_init__(self):
        if not 0 < self.encoder_rate < self.decoder_rate < 1:
            raise ValueError(f"encoder_rate = {self.encoder_rate}, decoder_rate = {self.decoder_rate}: expected "
                             "0 < encoder_rate < decoder_rate < 1")


@dataclass(frozen=True, eq=False)
class RetroMAEStep:
    """views : the two masked id arrays · encoder, decoder : (numerator, denominator) of the two losses · gradients :
    name → float32 gradient of their two means' sum, decoder tensors under "decoder." """

    views: tuple[np.ndarray, np.ndarray]
    encoder: tuple[float, float]
    decoder: tuple[float, float]
    gradients: dict[str, np.ndarray]


class RetroMAE:
    """Encoder, one shallow decoder over its sentence row, and a vocabulary projection that both losses use.

    encoder : bidirectional CausalEncoder; row 0 is the sentence row · decoder : name → tensors of a few blocks and a
    final norm (decoder_config's "blocks.…", "ln.…") · head : float32 (vocabulary, hidden)

    The decoder reads the sentence row in place of token 0's embedding, and the other view's embeddings.
    """

    def __init__(self, encoder: CausalEncoder, decoder_config: CausalConfig, decoder: Mapping[str, np.ndarray],
                 head: np.ndarray, settings: RetroMAESettings):
        for name, config in (("encoder", encoder.config), ("decoder", decoder_config)):
            if config.visibility != "bidirectional":
                raise ContractError(f"{name} visibility = {config.visibility!r}: expected bidirectional")
        self.encoder, self.decoder, self.head, self.settings = encoder, Blocks(decoder_config, decoder), head, settings
        self.decoder_tensors = dict(decoder)

    def views(self, ids, *, example: str, step: int):
        """((masked ids, targets) of the encoder's view, the same of the decoder's); targets -1 where not masked."""
        ids, s, found = np.asarray(ids, np.int32), self.settings, []
        for view, rate in (("encoder", s.encoder_rate), ("decoder", s.decoder_rate)):
            places = masked_places(len(ids), rate, seed=s.seed, example=example, step=step, view=view)
            masked, targets = ids.copy(), np.full(len(ids), -1, np.int32)
            masked[places], targets[places] = s.mask_id, ids[places]
            found.append((masked, targets))
        return found

    @ieee_mode()
    def step(self, ids, *, example: str, step: int) -> RetroMAEStep:
        """Losses and gradients of one text: the decoder's gradient reaches the encoder through the sentence row alone
        (and the embeddings through its own input)."""
        (light, light_targets), (heavy, heavy_targets) = self.views(ids, example=example, step=step)
        rows, kept = self.encoder.forward_saved(light)
        encoder_loss, drows, dhead = language_loss(rows, self.head, light_targets)
        x = self.encoder.embed(heavy)
        x[0] = rows[0]
        out, decoder_kept = self.decoder.forward_saved(x)
        decoder_loss, dout, dhead_too = language_loss(out, self.head, heavy_targets)
        decoder_gradients, dx = self.decoder.backward(decoder_kept, dout)
        drows[0] += dx[0]
        gradients = self.encoder.backward(light, kept, drows)
        dx[0] = 0.0  # token 0 of the decoder's view was not read
        for name, gradient in self.encoder.embedding_gradients(heavy, dx).items():
            gradients[name] += gradient
        gradients |= {DECODER + name: g for name, g in decoder_gradients.items()}
        return RetroMAEStep((light, heavy), encoder_loss, decoder_loss, gradients | {HEAD: dhead + dhead_too})

    def training_state(self) -> dict[str, np.ndarray]:
        """name → every tensor that training needs."""
        decoder = {DECODER + name: array for name, array in self.decoder_tensors.items()}
        return {**self.encoder.tensors, **decoder, HEAD: self.head}

    def released(self) -> dict[str, np.ndarray]:
        """name → the tensors of a release: the encoder's. Decoder, projection and masks belong to training."""
        return dict(self.encoder.tensors)
