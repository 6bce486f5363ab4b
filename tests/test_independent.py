"""The stranger's reading: tests/independent/ is docextract written in C from docs/ alone, without a look at the
packages. Initial weights, logits, losses, gradients, clipping and AdamW must have the packages' digests."""
import dataclasses
import shutil
import subprocess
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import dx_kernels
import dx_model
import dx_numerics
import dx_train
import numpy as np
import pytest
from dx_kernels import digest
from dx_model.docextract import (DocExtract, DocExtractConfig, Gradients, Losses, Parameters, Targets, Workspace,
                                 initial_parameters)
from dx_model.docextract.extraction import page_logits

HERE = Path(__file__).resolve().parent / "independent"
PROBLEMS, WINDOW = 150, 40  # decoding problems; rows a window holds where pages are cut into windows
TERMS = ("tag", "run", "role", "doc", "item", "key_value")
WEIGHTS = {"tag": 1.0, "run": 0.7, "role": 0.5, "doc": 0.3, "item": 0.9, "key_value": 1.3}
OUTPUTS = ("tag", "role", "doc", "item", "key_value")
TEXTS = ("Total:", "12.50", "Tax", "RM", "3,400.00", "Invoice", "No", "#17/4", "Date:12/03/2018", "Kuala", "é", "日本",
         "a", "", "rm5.00", "(x)y")
# What random texts are made of. All of it is its own NFKC, so cleaning leaves it alone: the C program does not clean.
FRAGMENTS = (*"0123456789" * 2, *"aAzZ_()[]:.,/-'%#$€ ", "RM", "usd", "Mar", "12", "20180312", "2018",
             "1/2/18", "ᾈ", "٣٤", "日本", "é", "ß", "\u2019", "\t", "\u2028", "🙂", "1,000", ".00", ",50", "5.00", "٪",
             "ⵣ", "ʹ")
AMOUNTS = ("1.05", "2.10", "3.15", "1.05", "0.02", "4.20", "5.25", "0.00", "RM 3.17", "10.50-", "12.35%", "1,002.10",
           "7")

SMALL = dict(roles=("question", "answer"), doc_types=("receipt", "invoice", "form"), hidden_size=24,
             num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, max_chars=7, char_dim=6,
             char_channels=19, position_buckets=11, pair_hidden=9, relation_size=5)
# fields, repeated fields, words of each page, range of the weights (None: initial), terms, clipping limit
CASES = {
    "initial weights": (("date", "total", "item"), ("item",), (37, 5), None, TERMS, 0.5),
    "generic weights": (("date", "total", "item"), ("item",), (70, 1, 18), 0.3, TERMS, 0.0),
    "many fields": (tuple(f"f{i}" for i in range(10)), ("f3",), (130,), 0.8, TERMS, 1.0),
    "two terms": (("dÄte", 'a "total"\n\x01\\'), (), (20, 17), 0.5, ("run", "item"), 0.0),
    "one term": (("date", "total"), (), (20, 17), 0.5, ("key_value",), 0.0),
    "without pointers": (("date", "total"), (), (20, 17), 0.5, ("tag", "role", "doc"), 0.0),
}
HEADS = {"tag": "tag_head", "run": "tag_head", "role": "role_head", "doc": "doc_head", "item": "rel_q rel_k",
         "key_value": "rel_q rel_k"}


def any_text(rng):
    return "".join(FRAGMENTS[i] for i in rng.integers(len(FRAGMENTS), size=rng.integers(0, 7)))


def amount_text(rng):
    text = AMOUNTS[rng.integers(len(AMOUNTS))] if rng.random() < 0.7 else f"{rng.integers(1, 999) / 100:.2f}"
    return text.replace(".", ",") if rng.random() < 0.2 else text


def scattered(number, text, rng):
    """Words anywhere, some alike, with and without lines, upright or turned."""
    count, words = int(rng.integers(0, 60)), []
    for _ in range(count):
        x = float(rng.integers(0, 12) * 10 + rng.choice([0, 0.5, 3.25]))
        y = float(rng.integers(0, 20) * 8 + rng.choice([0, 0, 2.5]))
        box = (x, y, x + float(rng.choice([0.0, 9.0, 14.5])), y + float(rng.choice([0.0, 7.0, 8.0, 30.0])))
        line = int(rng.integers(0, 6)) if number % 3 == 0 and rng.random() < 0.6 else None
        words.append(dx_model.Word(text(rng), box, line))
    return dx_model.Page(f"s{number}", 150, 200, words + words[:count // 6], rotation=90 * (number % 4))


def columns(number, text, rng):
    """Two columns of running text, with a title, sometimes a row across both and rows below."""
    words = [dx_model.Word("Title", (100, 5, 300, 14))]
    for r in range(int(rng.integers(9, 16))):
        y = 20 + 12 * r
        if r == 6 and number % 2:
            words.append(dx_model.Word("across", (20, y, 380, y + 9)))
            continue
        if r == 7 and number % 4 == 0:  # without width, where the gutter may be
            words.append(dx_model.Word("|", (195.0, y, 195.0, y + 9)))
            continue
        for left in (10, 210):
            edges = (left + np.sort(rng.choice(170, 11 if number % 5 else 9, replace=False)) * 1.0).tolist()
            words += [dx_model.Word(text(rng), (a, y, b - 0.5, y + 9)) for a, b in zip(edges, edges[1:])]
    words += [dx_model.Word(text(rng), (10 + 40 * k, 230, 45 + 40 * k, 239)) for k in range(int(rng.integers(0, 6)))]
    return dx_model.Page(f"c{number}", 400, 300, words)


def page(number, count, rng):
    """A page of words in crooked lines; every second one comes with the source's line numbers."""
    words = []
    for i in range(count):
        x, y = 10.0 + 31.5 * (i % 6) + rng.uniform(0, 3), 20.0 + 14.0 * (i // 6) + rng.uniform(0, 4)
        box = (x, y, x + rng.uniform(0, 40), y + rng.uniform(0, 12))
        words.append(dx_model.Word(TEXTS[rng.integers(len(TEXTS))], box, i // 6 if number % 2 else None))
    return dx_model.Page(f"p{number}", 220, 400, words)


def targets(config, n, rng):
    """Random targets of every loss, some of them unknown."""
    def some(high):
        return rng.integers(-1, high, n).astype(np.int32)

    fields, places = [], []
    for k, name in enumerate(config.fields):
        count = 1 if name in config.repeated else k % 3
        starts = np.sort(rng.choice(n, min(count, n), replace=False))
        ends = [min(start + int(rng.integers(0, 3)), n - 1) for start in starts]
        places += [(len(fields), int(start), end) for start, end in zip(starts, ends)]
        fields.append(k)
    return Targets(tag=some(config.num_tags), role=some(config.num_role_tags), doc=int(rng.integers(0, 3)),
                   item=some(n), key_value=some(n), run_fields=np.array(fields, np.int32),
                   run_places=np.array(places, np.int32).reshape(-1, 3))


def generic(config, reach, rng):
    """Weights without special values: everything between -reach and reach."""
    parameters = initial_parameters(config, 5)
    parameters.load_container({name: rng.uniform(-reach, reach, a.shape).astype(np.float32)
                               for name, a in parameters.to_container().items()})
    parameters["char_emb.weight"][0] = 0
    return parameters


def write(path, config, seed, given, source, encoded, wanted, settings):
    """The file that independent/main.c reads; integers without a width are 64 bits, all little-endian."""
    terms = dict(settings.loss_weights)
    with open(path, "wb") as file:
        def put(dtype, *values):
            for value in values:
                file.write(np.asarray(value, dtype).tobytes())

        put("<i8", len(config.fields), len(config.roles), config.num_doc_types, config.hidden_size,
            config.num_hidden_layers, config.num_attention_heads, config.intermediate_size, config.max_chars,
            config.char_vocab, config.char_dim, config.char_channels, config.position_buckets, config.word_features,
            config.pair_features, config.pair_hidden, config.relation_size)
        put("<u8", seed)
        put("<f8", config.layer_norm_eps)
        put("<i8", settings.seed, settings.steps, settings.batch, settings.warmup)
        put("<f8", settings.learning_rate, settings.final_rate, settings.weight_decay, settings.beta1, settings.beta2,
            settings.eps, settings.clip_norm, settings.backbone_scale, settings.field_weight,
            [terms.get(t, 0.0) for t in TERMS])
        put("<i8", len(encoded))
        put("<i8", given is not None)
        put("<i4", config.repeated_mask())
        put("<i8", config.max_words, config.cut, config.keep_file_order, config.columns, dx_model.NUMERICS_VERSION,
            WINDOW)
        for name in (*config.fields, *config.roles, *config.doc_types):
            put("<i8", len(name.encode()))
            file.write(name.encode())
        if given is not None:
            put("<f4", *given.to_container().values())
        table = kinds(source)
        put("<i8", len(table))
        put("<i4", table)
        for pg, e, t in zip(source, encoded, wanted):
            codes = [[ord(c) for c in w.text] for w in pg.words]
            put("<i8", len(pg.words), pg.rotation, config.keep_file_order, config.columns, config.cut)
            put("<f8", pg.width, pg.height, [w.box for w in pg.words])
            put("<i4", [-1 if w.line is None else w.line for w in pg.words], np.cumsum([0, *map(len, codes)]))
            put("<u4", sum(codes, []))
            put("<i8", len(e.row), len(t.run_fields), len(t.run_places))
            put("<i4", t.tag, t.role, t.doc, t.item, t.key_value, t.run_fields, t.run_places)


def kinds(source):
    """(code point, kind, digit value) of every code point of the pages, kinds numbered as in independent/page.h."""
    groups = ("Nd", "Lu Lt", "Ll", "Lo Lm", "Zs Zl Zp", "Sc", "P S", "Cn Cs")
    rows = []
    for c in sorted({c for p in source for w in p.words for c in w.text} | {" "}):
        category = unicodedata.category(c)
        which = [k for k, names in enumerate(groups) if category in names.split() or category[0] in names.split()]
        if c in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85":
            which = [4]
        rows.append((ord(c), which[0] if which else 8, unicodedata.decimal(c, 0)))
    return rows


def rows_of(encoded):
    """name → digest of the arrays of encoded pages."""
    result = {}
    for p, e in enumerate(encoded):
        arrays = {"box": e.box, "row": e.row, "line": e.whole[1], "key": e.whole[2], "characters": e.characters,
                  "inverse": e.table_ids[0], **{f"feature{k}": f for k, f in enumerate(e.features.T)}}
        result |= {f"page{p}/{name}": digest(np.ascontiguousarray(a)) for name, a in arrays.items()}
    return result


def expected(config, seed, given, encoded, wanted, settings, folder):
    """name → digest through dx_model, step by step; names as independent/main.c prints them."""
    parameters = initial_parameters(config, seed)
    result = {f"initial/{name}": digest(a) for name, a in parameters.to_container().items()}
    result |= rows_of(encoded) | {"initial/file": DocExtract(parameters).save_pretrained(folder)}
    parameters = parameters if given is None else given.copy()
    small = Parameters(dataclasses.replace(config, max_words=WINDOW))
    small.load_container(parameters.to_container())
    for p, e in enumerate(encoded if settings.steps else ()):
        merged = page_logits(DocExtract(small), e, OUTPUTS[:3] + ("pointer",))
        arrays = {name: getattr(merged, name) for name in (*OUTPUTS, "key_value_p")} | decoded(config, merged.tag, 0.01)
        result |= {f"merged{p}/{name}": digest(a) for name, a in arrays.items()}
        result[f"merged{p}/windows"] = digest(np.array(float(merged.windows)))
    terms = dict(settings.loss_weights)
    losses, space = Losses(config, terms, settings.field_weight), Workspace()
    heads = " ".join(HEADS[t] for t in terms).split()
    specs = [s for s in parameters.specs if s.group == "backbone" or s.name.split(".")[0] in heads]
    first, second, batch, one = (Gradients(config) for _ in range(4))
    for moments in (first, second):
        moments.zero()

    def tensors(group, holder):
        result.update({f"{group}/{name}": digest(a) for name, a in holder.to_container().items()})

    def numbers(group, values):
        result.update({f"{group}/{name}": digest(np.array(value)) for name, value in values.items()})

    for step in range(settings.steps):
        model, where = DocExtract(parameters), f"step{step + 1}"
        for p in range(settings.batch):
            epoch, place = divmod(step * settings.batch + p, len(encoded))
            k = int(dx_model.epoch_permutation(settings.seed, epoch, len(encoded))[place])
            saved = model.forward_saved(encoded[k], space)
            parts, douts = losses.run(saved.outputs, wanted[k], 1 / settings.batch, space)
            grads, group = one if p else batch, f"{where}/page{p}"
            model.backward(saved, douts, grads)
            pairs = np.empty((config.pair_features, len(encoded[k].row), len(encoded[k].row)), np.float32)
            model.pair_features(encoded[k], pairs)
            result[f"{group}/pairs"] = digest(pairs)
            result |= {f"{group}/position{i}": digest(ids) for i, ids in enumerate(encoded[k].table_ids[1:])}
            for name in OUTPUTS:
                result[f"{group}/out/{name}"] = digest(getattr(saved.outputs, name))
                gradient = getattr(douts, name)
                if gradient is not None:
                    result[f"{group}/dout/{name}"] = digest(gradient.reshape(-1) if name == "doc" else gradient)
            result |= {f"{group}/{name}": digest(a) for name, a in decoded(config, saved.outputs.tag).items()}
            numbers(f"{group}/loss", {name: part.value for name, part in parts.items()})
            numbers(f"{group}/loss", {"total": losses.total(parts)})
            tensors(f"{group}/grad", grads)
            if p:
                batch.add(one)
        arrays = [[holder[s.name] for s in specs] for holder in (parameters, batch, first, second)]
        rate = dx_train.learning_rate(step, settings.steps, settings.learning_rate, settings.warmup,
                                      settings.final_rate)
        numbers(where, {"norm": dx_model.clip_gradients(arrays[1], settings.clip_norm), "rate": rate})
        tensors(f"{where}/clipped", batch)
        dx_model.adamw_steps(
            *arrays, step=step + 1, rate=rate, beta1=settings.beta1, beta2=settings.beta2, eps=settings.eps,
            scales=[1.0 if s.group == "head" else settings.backbone_scale for s in specs],
            decays=[s.decay for s in specs], weight_decay=settings.weight_decay)
        for name, holder in (("weight", parameters), ("m", first), ("v", second)):
            tensors(f"{where}/{name}", holder)
        result[f"{where}/file"] = model.save_pretrained(folder)
    return result


def decoded(config, logits, floor=0.001):
    """name → array of what extraction makes of the tag logits."""
    repeated, tags, absent = config.repeated_mask(), np.empty(len(logits), np.int32), np.empty(len(config.fields))
    score = dict(zip(("score", "bound", "exact"), dx_model.decode_tags(logits, repeated, tags)))
    none = np.empty((0, 3), np.int32)
    runs, p = dx_model.run_posteriors(logits, repeated, absent, none, np.empty(0), floor=floor, capacity=100000)
    return {"tags": tags, "absent": absent, "runs": runs, "probabilities": p,
            **{name: np.array(float(value)) for name, value in score.items()}}


def trained(model, encoded, wanted, settings):
    """name → digest of what dx_train's run shows of itself: rate, norm and weights after every step."""
    examples = [dx_train.Example(f"{k}#0", e, t) for k, (e, t) in enumerate(zip(encoded, wanted))]
    result = {}
    with dx_train.FineTune(settings).start(model, examples, tell=lambda text: None) as run:
        for record in run:
            where = f"step{record.step}"
            result |= {f"{where}/rate": digest(np.array(record.rate)), f"{where}/norm": digest(np.array(record.norm))}
            result |= {f"{where}/weight/{name}": digest(a) for name, a in run.parameters.to_container().items()}
    return result


def build(folder, name):
    """One of the three programs; docextract has all files without a main function of another."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("needs a C compiler")
    others = sorted(path.name for path in HERE.glob("*.c") if not path.name.endswith("_main.c"))
    sources = {"functions": ["functions_main.c"], "docextract": others, "decode": [
        "decode_main.c", "decode.c", "posteriors.c", "chain.c", "run_loss.c", "io.c"]}[name]
    subprocess.run([compiler, "-std=c11", "-O1", "-ffp-contract=off", *[HERE / source for source in sources], "-o",
                    folder / name, "-lm"], check=True)
    return folder / name


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("independent"), "docextract")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("independent"), "decode")


@pytest.mark.parametrize("case", CASES)
def test_the_documentation_is_enough(program, tmp_path, case):
    fields, repeated, sizes, reach, terms, limit = CASES[case]
    rng, seed = np.random.default_rng(len(case)), 2 ** 63 + 11
    config = DocExtractConfig(fields=fields, repeated=repeated, **SMALL)
    settings = dx_train.TrainSettings(seed=2 ** 32 - 5, steps=4, batch=2, learning_rate=1e-2, warmup=2, clip_norm=limit,
                                      backbone_scale=0.1, loss_weights=tuple((t, WEIGHTS[t]) for t in terms))
    given = None if reach is None else generic(config, reach, rng)
    source = [page(number, count, rng) for number, count in enumerate(sizes)]
    encoded = [dx_model.encode_page(p, config.encoding()) for p in source]
    wanted = [targets(config, len(e.row), rng) for e in encoded]
    write(tmp_path / "input", config, seed, given, source, encoded, wanted, settings)
    want = expected(config, seed, given, encoded, wanted, settings, tmp_path)
    compare(program, tmp_path / "input", want)
    run = trained(DocExtract(given or initial_parameters(config, seed)), encoded, wanted, settings)
    assert run == {name: want[name] for name in run} and f"step{settings.steps}/norm" in run


@pytest.mark.parametrize("options", [{}, dict(columns=False, cut=False), dict(keep_file_order=True)])
@pytest.mark.parametrize("text", [any_text, amount_text])
@pytest.mark.parametrize("layout", [scattered, columns])
def test_pages_become_the_same_rows(program, tmp_path, layout, text, options):
    rng, config = np.random.default_rng(7), DocExtractConfig(fields=("f",), **SMALL, **options)
    source = [layout(number, text, rng) for number in range(40)]
    encoded = [dx_model.encode_page(p, config.encoding()) for p in source]
    wanted = [targets(config, len(e.row), rng) for e in encoded]
    settings = dx_train.TrainSettings(steps=0)
    write(tmp_path / "input", config, 0, None, source, encoded, wanted, settings)
    want = expected(config, 0, None, encoded, wanted, settings, tmp_path)
    compare(program, tmp_path / "input", want)


def problem(k, rng):
    """(logits, repeated) of pages whose fields compete with themselves for many places, some with ties."""
    n, fields = int(rng.integers(1, 60)), int(rng.integers(1, 16))
    repeated = (rng.random(fields) < (0.5 if k % 4 == 0 else 0.1)).astype(np.uint8)
    logits = rng.normal(0, (0.5, 3, 30, 400)[k % 4], (n, 1 + 2 * fields)).astype(np.float32)
    logits[:, 0] += rng.choice([0, 2, 6])
    return np.round(logits) if k % 3 == 0 else logits, repeated


def test_decoding_gives_the_same_bits(decoder, tmp_path):
    rng, want = np.random.default_rng(3), {}
    with open(tmp_path / "input", "wb") as file:
        file.write(np.array(PROBLEMS, "<i8").tobytes())
        for k in range(PROBLEMS):
            logits, repeated = problem(k, rng)
            config = SimpleNamespace(fields=range(len(repeated)), repeated_mask=lambda repeated=repeated: repeated)
            config.repeated = [f for f in config.fields if repeated[f]]
            config.num_tags = config.num_role_tags = logits.shape[1]
            t, gradient = targets(config, len(logits), rng), np.empty_like(logits)
            file.write(np.array([len(logits), len(repeated), len(t.run_fields), len(t.run_places)], "<i8").tobytes())
            file.write(np.array(0.01, "<f8").tobytes())
            for array in (repeated.astype("<i4"), t.run_fields, t.run_places, logits):
                file.write(array.tobytes())
            found = decoded(config, logits, 0.01)
            losses = np.empty(len(t.run_fields))
            top, count = dx_model.below.run_loss(logits, repeated, t.run_fields, t.run_places, losses, gradient,
                                                 scale=1.0 / len(losses))
            found |= {"loss": np.array(top / count), "gradient": gradient}
            want |= {f"problem{k}/{name}": digest(a) for name, a in found.items()}
            want |= {f"exact {k}": float(found["exact"])}
    exact = [want.pop(f"exact {k}") for k in range(PROBLEMS)]
    compare(decoder, tmp_path / "input", want)
    assert 0.0 in exact


def test_functions_and_numbers_have_the_same_bits(tmp_path):
    n = 20000
    bits = np.empty(n, np.uint64)
    dx_numerics.random_u64(9, bits)
    between = -20.0 + 40.0 * ((bits >> np.uint64(11)) * 2.0 ** -53)
    x = np.concatenate([(bits >> np.uint64(32)).astype(np.uint32).view(np.float32), between.astype(np.float32)])
    u, y, slope = np.concatenate([bits.view(np.float64), between]), np.empty_like(x), np.empty_like(x)
    dx_kernels.gelu_erf_forward(x, y)
    dx_kernels.gelu_erf_backward(np.full_like(x, 0.7), x, slope)
    a, b, fused = np.zeros((n, 17), np.float32), np.zeros((n, 17), np.float32), np.empty(n, np.float32)
    a[:, 0], b[:, 0], a[:, 16], b[:, 16] = x[:n], np.roll(x[:n], -3), np.roll(x[:n], -1), np.roll(x[:n], -7)
    dx_numerics.dot16_rows(a, b, fused)
    want = {name: getattr(dx_numerics, name)(x) for name in ("exp32", "tanh32", "sigmoid32", "erf32", "rsqrt32")}
    want |= {name: getattr(dx_numerics, name)(u) for name in ("exp64", "log64", "log1p64", "softplus64")}
    want |= {"gelu_erf": y, "gelu_erf_slope": slope, "fused": fused,
             "float16": dx_numerics.narrow_float16(x).view(np.uint16), "bfloat16": dx_numerics.narrow_bfloat16(x),
             "permutation": dx_numerics.permutation(77, n).astype(np.float32),
             "dot16": np.array(dx_numerics.dot16(x[n:-5], x[n + 5:]), np.float32)}
    for name, nan in (("float16", 0x7E00), ("bfloat16", 0x7FC0)):
        want[name] = np.where(np.isnan(x), nan, want[name]).astype(np.int32)
    compare(build(tmp_path, "functions"), str(n), {name: digest(array) for name, array in want.items()})


def compare(program, path, want):
    done = subprocess.run([program, path], capture_output=True, text=True)
    got = dict(line.split() for line in done.stdout.splitlines())
    different = [name for name in want if name in got and got[name] != want[name]]
    assert not different, f"{len(different)} of {len(want)}: {different[:20]}"
    assert done.returncode == 0, done.stderr
    assert got.keys() == want.keys()
