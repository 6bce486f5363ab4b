"""Pools and rows beside PyTorch, sentence-transformers and tokenizers, where these are installed (the pyproject's test
extra does not name them); differences of policy are tests too."""
import warnings

import numpy as np
import pytest
from dx_model import readout

F32 = np.float32


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def batch(rng, left=False):
    """(hidden (3, 9, 8), mask): prefixes of 9, 4 and 1 rows, or suffixes."""
    hidden = rng.standard_normal((3, 9, 8)).astype(F32)
    mask = np.arange(9) < np.array([[9], [4], [1]])
    return hidden, np.ascontiguousarray(mask[:, ::-1]) if left else mask


def gradients(torch, hidden, function, dy):
    x = torch.tensor(hidden, requires_grad=True)
    y = function(x)
    y.backward(torch.tensor(dy))
    return y.detach().numpy(), x.grad.numpy()


def masked_mean(torch, hidden, mask):
    w = mask.to(hidden.dtype).unsqueeze(-1)
    return (hidden * w).sum(dim=1) / w.sum(dim=1)


def masked_max(torch, hidden, mask):
    return hidden.masked_fill(~mask.unsqueeze(-1), -torch.inf).max(dim=1).values


def attention_pool(torch, hidden, mask, p):
    scores = torch.tanh(hidden @ p["attention.weight"].T + p["attention.bias"]) @ p["attention.v"].T
    scores = scores.squeeze(-1).masked_fill(~mask, -torch.inf)
    return torch.einsum("bs,bsd->bd", torch.softmax(scores, dim=-1), hidden)


@pytest.mark.parametrize("left", [False, True])
def test_pools_and_gradients_of_torch(torch, rng, left):
    hidden, mask = batch(rng, left)
    tmask, dy = torch.tensor(mask), rng.standard_normal((3, 8)).astype(F32)
    for mode, function in (("mean", masked_mean), ("max", masked_max)):
        pooling = readout.Pooling(mode)
        pooled = pooling.forward(hidden, mask)
        y, dx = gradients(torch, hidden, lambda x, function=function: function(torch, x, tmask), dy)
        assert np.abs(y - pooled.vectors).max() < 1e-6
        assert np.abs(dx - pooling.backward(pooled, dy).hidden).max() < 1e-6


def test_attention_pool_of_torch(torch, rng):
    hidden, mask = batch(rng)
    pooling = readout.Pooling((readout.AttentionPool(5),))
    p = {n: (rng.standard_normal(s) / 2).astype(F32) for n, s in pooling.parameter_shapes(8).items()}
    tp = {n: torch.tensor(v, requires_grad=True) for n, v in p.items()}
    dy = rng.standard_normal((3, 8)).astype(F32)
    y, dx = gradients(torch, hidden, lambda x: attention_pool(torch, x, torch.tensor(mask), tp), dy)
    pooled = pooling.forward(hidden, mask, p)
    back = pooling.backward(pooled, dy)
    assert np.abs(y - pooled.vectors).max() < 1e-6 and np.abs(dx - back.hidden).max() < 2e-6
    for name, value in tp.items():
        assert np.abs(value.grad.numpy() - back.parameters[name]).max() < 5e-6, name


def test_bert_pooler_and_mixture_of_torch(torch, rng):
    hidden, mask = batch(rng)
    pooling, dy = readout.Pooling("bert_pooler"), rng.standard_normal((3, 8)).astype(F32)
    p = {n: (rng.standard_normal(s) / 2).astype(F32) for n, s in pooling.parameter_shapes(8).items()}
    tp = {n: torch.tensor(v, requires_grad=True) for n, v in p.items()}
    y, dx = gradients(torch, hidden, lambda x: torch.tanh(x[:, 0] @ tp["pooler.weight"].T + tp["pooler.bias"]), dy)
    pooled = pooling.forward(hidden, mask, p)
    back = pooling.backward(pooled, dy)
    assert np.abs(y - pooled.vectors).max() < 1e-6 and np.abs(dx - back.hidden).max() < 1e-6
    assert np.abs(tp["pooler.weight"].grad.numpy() - back.parameters["pooler.weight"]).max() < 2e-6
    states = [rng.standard_normal((2, 3, 4)).astype(F32) for _ in range(3)]
    p = {"layers.logits": rng.standard_normal(3).astype(F32), "layers.gamma": np.array([1.25], F32)}
    choice = readout.LayerChoice((0, 1, 2), "mixture")
    h, saved = choice.forward(states, p)
    tp = {n: torch.tensor(v, requires_grad=True) for n, v in p.items()}
    ts = [torch.tensor(s, requires_grad=True) for s in states]
    alpha = torch.softmax(tp["layers.logits"], 0)
    mixed = tp["layers.gamma"] * (alpha[0] * ts[0] + alpha[1] * ts[1] + alpha[2] * ts[2])
    dh = rng.standard_normal(h.shape).astype(F32)
    mixed.backward(torch.tensor(dh))
    dstates, dp = choice.backward(dh, saved, np.ones((2, 3), bool))
    assert np.abs(mixed.detach().numpy() - h).max() < 1e-6
    for k in range(3):
        assert np.abs(ts[k].grad.numpy() - dstates[k]).max() < 1e-6
    for name in p:
        assert np.abs(tp[name].grad.numpy() - dp[name]).max() < 5e-6


def test_half_precision_of_torch_is_less_exact(torch, rng):
    """The same float16 rows: a sum kept in float16 is off by more than one rounding of the result, ours is not."""
    hidden = (1 + rng.random((1, 2000, 4)) / 8).astype(np.float16)
    ours = readout.Pooling("mean", output_dtype="float16").forward(hidden, np.ones((1, 2000), bool)).vectors
    exact = hidden.astype(float).mean(1)
    assert np.abs(ours - exact).max() <= np.spacing(np.float16(1))
    running = torch.zeros(1, 4, dtype=torch.float16)
    for row in torch.tensor(hidden).unbind(1):
        running = running + row
    assert np.abs((running / 2000).numpy() - exact).max() > 4 * np.spacing(np.float16(1))
    x = torch.tensor(hidden).to(torch.bfloat16)
    bits = x.view(torch.int16).numpy().view(np.uint16)
    ours = readout.Pooling("mean").forward(bits, np.ones((1, 2000), bool), dtype="bfloat16").vectors
    assert np.abs(ours - x.double().mean(1).numpy()).max() < 1e-6


THEIR_MODES = {"cls": "first", "lasttoken": "last", "max": "max", "mean": "mean",
               "mean_sqrt_len_tokens": "mean_sqrt_length", "weightedmean": "position_weighted_mean"}


@pytest.fixture
def theirs(torch):
    """(mode, hidden, mask) → the sentence-transformers module's vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("sentence_transformers.sentence_transformer.modules",
                                      reason="sentence-transformers is not installed")

    def run(mode, hidden, mask):
        module = library.Pooling(hidden.shape[2], pooling_mode=mode)
        return module({"token_embeddings": torch.tensor(hidden),
                       "attention_mask": torch.tensor(mask.astype(np.int64))})["sentence_embedding"].numpy()
    return run


@pytest.mark.parametrize("mode", THEIR_MODES)
def test_modes_of_sentence_transformers(theirs, rng, mode):
    """Equal with padding on either side."""
    for left in (False, True):
        hidden, mask = batch(rng, left)
        ours = readout.pool(hidden, mask, THEIR_MODES[mode])
        assert np.abs(theirs(mode, hidden, mask) - ours).max() < 2e-6, left


def test_left_padding_moves_physical_position_weights_and_not_ours(rng):
    """Weights by column, as widely written, count padding; ours are ranks among the selected rows."""
    hidden, mask = batch(rng)
    shifted = np.concatenate([np.zeros((3, 4, 8), F32), hidden], 1)
    moved = np.concatenate([np.zeros((3, 4), bool), mask], 1)

    def by_column(x, m):
        w = np.arange(1, m.shape[1] + 1) * m
        return (x * w[..., None]).sum(1) / w.sum(1, keepdims=True)
    assert np.abs(by_column(hidden, mask) - by_column(shifted, moved)).max() > 1e-3
    ours = [readout.pool(*pair, "position_weighted_mean") for pair in ((hidden, mask), (shifted, moved))]
    assert ours[0].tobytes() == ours[1].tobytes() and np.abs(ours[0] - by_column(hidden, mask)).max() < 1e-6


def test_no_rows_are_finite_there_and_refused_here(theirs, rng):
    """A clamped denominator gives a silent zero vector; here that is the policy "zero" and must be asked for."""
    hidden, mask = batch(rng)
    mask[1] = False
    assert not theirs("mean", hidden, mask)[1].any()
    with pytest.raises(readout.ReadoutError, match="rows.selected"):
        readout.pool(hidden, mask, "mean")
    ours = readout.Pooling("mean", readout.EmptyRows("zero")).forward(hidden, mask).vectors
    assert np.abs(ours - theirs("mean", hidden, mask)).max() < 1e-6


def test_rows_of_a_fast_tokenizer():
    """From text to the row table of the trace: pieces, inserted rows, padding, a pair."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "in", "rome", "who"]
    ids = {token: i for i, token in enumerate(vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(length=9)
    encoding = made.encode("playing in Rome", "who")
    table = readout.from_encoding(encoding)
    assert [encoding.tokens[s] for s in np.flatnonzero(table.content)] == ["play", "##ing", "in", "rome", "who"]
    assert table.sequence.tolist() == [-1, 0, 0, 0, 0, -1, 1, -1, -1]
    assert table.type_ids.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert table.word_ids.tolist() == [-1, 0, 0, 1, 2, -1, 0, -1, -1]
    assert table.offsets[[1, 2, 3, 4, 6]].tolist() == [[0, 4], [4, 7], [8, 10], [11, 15], [0, 3]]
    assert table.valid.tolist() == [True] * 8 + [False] and np.flatnonzero(table.special).tolist() == [0, 5, 7, 8]
    assert np.flatnonzero(readout.first_piece_mask(table)).tolist() == [1, 3, 4, 6]
    made.enable_padding(length=12, direction="left")
    left = readout.from_encoding(made.encode("playing in Rome", "who"))
    assert (np.flatnonzero(readout.first_piece_mask(left)) - 4).tolist() == [1, 3, 4, 6]
    assert readout.end_row(left, 3) == 11
