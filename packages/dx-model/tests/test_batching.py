"""What a page gives does not depend on the pages before it, their order, or who else is computing."""
import hashlib
import threading

import dx_model
import pytest
from docextract_pass import CONFIG, page
from dx_model import encode_page
from dx_model.docextract import DocExtract, initial_parameters

SIZES = [20 + 380 * i * i // 39**2 for i in range(40)]


@pytest.fixture(scope="module")
def pages():
    """Forty pages of 20 to 400 words, shorter where pieces make the window full."""
    return [encode_page(page(n, 1200), CONFIG.encoding()) for n in SIZES]


def outputs(model, encoded):
    """SHA-256 of labels and scores of a page."""
    out = model.forward(encoded, ("tag", "role", "doc", "pointer"))
    h = hashlib.sha256()
    for name in ("tag", "role", "doc", "item", "key_value"):
        scores = getattr(out, name)
        h.update(scores.tobytes() + scores.argmax(-1).tobytes())
    return h.hexdigest()


def test_num_04_alone_or_batched(pages):
    """Each page by a model of its own, then all by length, in reverse, in batches of 1, 7 and 32 at once on threads."""
    parameters = initial_parameters(CONFIG, 3)
    with dx_model.degree(1):
        want = [outputs(DocExtract(parameters), p) for p in pages]
    model = DocExtract(parameters)
    for order in (range(40), range(39, -1, -1)):
        assert [outputs(model, pages[i]) for i in order] == [want[i] for i in order]
    for batch in (1, 7, 32):
        got = {}

        def work(begin, step, got=got):
            with dx_model.degree(1 + begin % 3):
                for i in range(begin, len(pages), step):
                    got[i] = outputs(model, pages[i])

        for begin in range(0, min(batch, 4)):
            threads = [threading.Thread(target=work, args=(k, batch)) for k in range(begin, batch, 4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        assert [got[i] for i in range(len(pages))] == want
