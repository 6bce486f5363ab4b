"""The two sides of bench train: the same pages, losses and optimizer settings in dx and in torch."""
import sys
from pathlib import Path

import numpy as np

# Rows of receipts as the model takes them: the 626 training receipts of SROIE in 32 quantiles.
ROWS = (66, 75, 81, 83, 87, 89, 91, 93, 95, 97, 100, 102, 104, 105, 108, 110, 112, 115, 118, 121, 125, 128, 130, 133,
        137, 143, 147, 159, 166, 174, 182, 205)
BATCH = 8
FIELDS = ("company", "date", "address", "total")
RATE, BETAS, DECAY, CLIP, FIELD_WEIGHT = 1e-3, (0.9, 0.98), 0.05, 1.0, 3.0
NAMES = "SDN BHD CASH TAX INVOICE TOTAL GST ITEM QTY AMOUNT ROUNDING CHANGE NO. TEL: JALAN TAMAN RM".split()


def batches(count):
    """Row counts of each batch of 8: every fourth quantile, so that the batches are alike."""
    return [ROWS[i::len(ROWS) // BATCH] for i in range(count)]


def example(k, rows):
    """A made-up receipt of so many rows, four words a line, a value for each field; a quarter of its words recur."""
    from dx_train import DocExtractConfig, Example, Page, Targets, Word, encode_page
    rng, words = np.random.default_rng(k), []
    for i in range(rows):
        number = f"{rng.integers(10 ** 6)}.{rng.integers(99):02d}"
        text = NAMES[rng.integers(len(NAMES))] if rng.random() < 0.4 else number
        x, y = 20.0 + 110.0 * (i % 4), 20.0 + 16.0 * (i // 4)
        words.append(Word(text, (x, y, x + 7.0 * len(text), y + 12.0)))
    config = DocExtractConfig(fields=FIELDS, cut=False)
    page = encode_page(Page(f"p{k}", 500, 20 + 5 * rows, words), config.encoding())
    tag, places = np.zeros(rows, np.int32), []
    for field in range(len(FIELDS)):
        first = field * rows // len(FIELDS)
        last = first + min(rows // len(FIELDS) - 1, (4, 0, 9, 0)[field])
        tag[first:last + 1], tag[first] = 2 + 2 * field, 1 + 2 * field
        places.append((field, first, last))
    return Example(f"p{k}", page, Targets(tag, run_fields=np.arange(len(FIELDS), dtype=np.int32),
                                          run_places=np.array(places, np.int32)))


def examples(groups):
    """Lists of Examples for groups of row counts."""
    numbers = iter(range(10 ** 6))
    return [[example(next(numbers), rows) for rows in group] for group in groups]


class Ours:
    """A training step of dx_train: forward, backward, sum over examples, clipping, AdamW, repacking."""

    def __init__(self, groups, terms):
        from dx_train import AdamW, BatchGradients, DocExtract, DocExtractConfig, Losses, trainable_set
        config = DocExtractConfig(fields=FIELDS, cut=False)
        self.groups, self.step, self.model = groups, 0, DocExtract.initial(config, 1)
        trainable = trainable_set(self.model.parameters, terms, 1.0)
        self.gradients = BatchGradients(self.model, Losses(config, terms, FIELD_WEIGHT))
        self.optimizer = AdamW(self.model.parameters, trainable, beta1=BETAS[0], beta2=BETAS[1], eps=1e-8,
                               weight_decay=DECAY)

    def run(self):
        """One step a group; the last loss."""
        for group in self.groups:
            result = self.gradients.run(group)
            self.optimizer.clip(self.gradients.total, CLIP)
            self.step += 1
            self.optimizer.step(self.step, RATE, self.gradients.total)
            self.model.repack()
        return sum(part.value for parts in result.parts for part in parts.values()) / len(group)


def twin():
    """tools/parity/docextract_twin.py."""
    folder = str(Path(__file__).resolve().parents[1] / "parity")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import docextract_twin
    return docextract_twin


class Theirs:
    """The same step in PyTorch, eager: all words of the batch packed into one matrix, attention page by page, the
    character encoder on distinct words only, fused AdamW. Pair features are given, made once (dx makes them in every
    step). source: the DocExtract whose weights it starts from · sdpa: scaled_dot_product_attention instead of softmax ·
    by_rows: the layout of the pair MLP"""

    def __init__(self, torch, groups, terms, source, sdpa, by_rows):
        self.torch, self.terms, self.sdpa, self.by_rows = torch, terms, sdpa, by_rows
        self.source = source
        self.model = twin().Twin(source.config).load(source.parameters.to_container())
        decayed = [p for p in self.model.parameters() if p.dim() > 1]
        rest = [p for p in self.model.parameters() if p.dim() <= 1]
        self.optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY},
                                            {"params": rest, "weight_decay": 0.0}], lr=RATE, betas=BETAS, fused=True)
        self.weight = torch.full((source.config.num_tags,), FIELD_WEIGHT)
        self.weight[0] = 1.0
        self.groups = [self._load(group) for group in groups]

    def _load(self, group):
        torch, pages, base = self.torch, [e.page for e in group], 0
        inverse = []
        for page in pages:
            inverse.append(torch.from_numpy(page.inverse.astype(np.int64)) + base)
            base += len(page.characters)
        sizes = [len(page) for page in pages]
        pairs = []
        for page in pages:
            made = np.empty((20, len(page), len(page)), np.float32)
            self.source.pair_features(page, made)
            flat = torch.from_numpy(made.reshape(20, -1))
            pairs.append(flat.T.contiguous() if self.by_rows else flat)
        return {"sizes": sizes, "inverse": torch.cat(inverse), "pairs": torch.cat(pairs, 0 if self.by_rows else 1),
                "chars": torch.from_numpy(np.concatenate([p.characters for p in pages]).astype(np.int64)),
                "features": torch.from_numpy(np.concatenate([p.features for p in pages])),
                "positions": torch.from_numpy(np.concatenate([p.position for p in pages], 1).T.astype(np.int64)),
                "tags": [torch.from_numpy(e.targets.tag.astype(np.int64)) for e in group],
                "places": [e.targets.run_places.tolist() for e in group]}

    def logits(self, batch):
        """Tag logits of each page."""
        torch, m, c = self.torch, self.model, self.model.config
        functional, sizes, chars = torch.nn.functional, batch["sizes"], batch["chars"]
        e = torch.relu(m.char_conv(m.char_emb(chars).transpose(1, 2)) * (chars != 0).unsqueeze(1)).amax(-1)
        x = m.char_proj(e)[batch["inverse"]] + m.feat_proj(batch["features"])
        for i, table in enumerate((m.pos_x0, m.pos_y0, m.pos_x1, m.pos_y1)):
            x = x + table(batch["positions"][:, i])
        x = m.emb_ln(x)
        if self.by_rows:
            bias = m.pair2(torch.relu(m.pair1(batch["pairs"]))).T
        else:
            hidden = torch.relu(torch.addmm(m.pair1.bias[:, None], m.pair1.weight, batch["pairs"]))
            bias = torch.addmm(m.pair2.bias[:, None], m.pair2.weight, hidden)
        bias = [b.reshape(-1, n, n) for b, n in zip(bias.split([n * n for n in sizes], 1), sizes)]
        d, heads = c.hidden_size, c.num_attention_heads
        scale = (d // heads) ** -0.5
        for block in m.blocks:
            parts = []
            for y, b, n in zip(block.qkv(block.ln1(x)).split(sizes), bias, sizes):
                q, k, v = y.view(n, 3, heads, d // heads).permute(1, 2, 0, 3)
                if self.sdpa:
                    a = functional.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=b[None])[0]
                else:
                    a = torch.softmax(torch.baddbmm(b, q, k.transpose(1, 2), alpha=scale), -1) @ v
                parts.append(a.permute(1, 0, 2).reshape(n, d))
            x = x + block.proj(torch.cat(parts))
            x = x + block.fc2(functional.gelu(block.fc1(block.ln2(x)), approximate="tanh"))
        return m.tag_head(m.final_ln(x)).split(sizes)

    def _run_loss(self, z, places):
        """A simpler form of the run loss, each field by itself over all runs and none (dx sums over legal taggings)."""
        torch, loss = self.torch, 0.0
        for field, first, last in places:
            begin, inside = z[:, 1 + 2 * field] - z[:, 0], torch.cumsum(z[:, 2 + 2 * field] - z[:, 0], 0)
            scores = (begin - inside)[:, None] + inside[None, :]
            lower = torch.ones_like(scores, dtype=torch.bool).tril(-1)
            scores = scores.masked_fill(lower, -1e9)
            everything = torch.logsumexp(torch.cat([scores.flatten(), scores.new_zeros(1)]), 0)
            loss = loss + everything - scores[first, last]
        return loss / len(places)

    def run(self):
        """One step a group; the last loss."""
        cross_entropy = self.torch.nn.functional.cross_entropy
        for batch in self.groups:
            self.optimizer.zero_grad(set_to_none=True)
            loss = 0.0
            for z, tag, places in zip(self.logits(batch), batch["tags"], batch["places"]):
                loss = loss + cross_entropy(z, tag, weight=self.weight)
                if "run" in self.terms:
                    loss = loss + self._run_loss(z, places)
            loss = loss / len(batch["sizes"])
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
            self.optimizer.step()
        return float(loss.detach())
