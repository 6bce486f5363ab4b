"""Random words and pages for the tests of text, reading order, word and pair features."""
import numpy as np

PARTS = [
    "RM", "rm", "USD", "TOTAL", "Date", ":", ".", ",", "-", "/", "(", ")", "[", "]", "%", "#", "$", "€",
    "12", "2018", "01", "5", "3", "000", "1,234.50", "12.00", "9.90", "20,000", "JAN", "Feb",
    "12/03/2018", "2018-01-02", "20180131", "é", "Ж", "ß", "ǅ", "漢字", "مرحبا", "١٢", "٣", "１２", "😀",
    " ", "\u00a0", "\u202f", "\u2019", "'", "\t", "\0", "_", "\ud800", "\u0378", "\U000e0fff", "x", "A"]


def arrays(texts):
    """(offset, code) of a list of str."""
    code = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.cumsum([0] + [len(t) for t in texts], dtype=np.int64), code


def random_texts(rng, n):
    return ["".join(PARTS[i] for i in rng.integers(0, len(PARTS), rng.integers(0, 6))) for _ in range(n)]


def amount_texts(rng, n):
    """Few distinct small amounts, so that sums, differences and repeats occur; other words between them."""
    out = []
    for v in rng.integers(1, 60, n):
        out.append("word" if v % 7 == 0 else f"{v // 10}.{v % 10}0" if v % 3 else f"RM{v // 10}.{v % 10}5")
    return out


def random_boxes(rng, n, spread=8):
    """(box, line): rows of roughly equal height, some equal, some degenerate."""
    x0, y0 = rng.integers(0, 40, n) * 10.0, rng.integers(0, spread, n) * 12.0 + rng.integers(-3, 4, n)
    box = np.array([x0, y0, x0 + rng.integers(0, 60, n), y0 + rng.integers(0, 14, n)]).T
    line = np.where(rng.random(n) < 0.3, -1, rng.integers(0, max(n // 3, 1), n)).astype(np.int32)
    return np.ascontiguousarray(box), line
