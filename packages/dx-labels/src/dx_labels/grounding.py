"""Finds the words a value was read from.

A page is seen as its rows (pieces of words in reading order, dx_model.encode_page), so that a place found here is a run
of the model's rows. Places are told as spans: (word, first character, end) of the page's words in file order.
"""
from dataclasses import dataclass

from .amounts import SLIPS, read_amount, reduced
from .dates import settled_order
from .month_names import MONTHS, without_accents
from .similar import most_similar
from .texts import key, plain
from .values import EXACT, SPELLED, compare, prepare

OUTCOMES = ("exact", "normalised", "similar", "scattered", "computed", "absent", "none", "not annotated")
LONGEST_DATE, LONGEST_AMOUNT = 7, 4  # rows
MOST_SEGMENTS = 4  # of a value that is not one run
MOST_TERMS = 400  # different amounts on a page up to which sums of three are tried


class Rows:
    """A page's rows as grounding reads them.

    texts : list of str, source text of each row
    keys : list of str, letters and digits of each
    glue : list of bool, the row goes on the word of the row before it
    figures : list of str, the digits of each text, OCR slips (O 0, l 1, S 5, …) taken as digits
    order : "dmy", "mdy" or None, what the page's dates settle
    """

    def __init__(self, page, encoded):
        source = page.texts
        self.word, self.start, self.end = encoded.word.tolist(), encoded.start.tolist(), encoded.end.tolist()
        self.texts = [source[w][a:b] for w, a, b in zip(self.word, self.start, self.end)]
        self.keys = [key(t) for t in self.texts]
        self.glue = [a > 0 and i > 0 and self.word[i - 1] == w and self.end[i - 1] == a
                     for i, (w, a) in enumerate(zip(self.word, self.start))]
        self.figures = ["".join(c for c in plain(t).translate(SLIPS) if "0" <= c <= "9") for t in self.texts]
        self.visual = encoded.row.tolist()
        self.order = settled_order(self.texts)

    def __len__(self):
        return len(self.texts)

    def text(self, first, last):
        """Rows first..last joined as they stand: a space between words; str."""
        parts = [self.texts[first]]
        for i in range(first + 1, last + 1):
            if not self.glue[i]:
                parts.append(" ")
            parts.append(self.texts[i])
        return "".join(parts)

    def spans(self, first, last):
        """The run as (word, start, end), pieces of one word put together; tuple of tuples."""
        out = []
        for i in range(first, last + 1):
            if out and out[-1][0] == self.word[i] and out[-1][2] == self.start[i]:
                out[-1][2] = self.end[i]
            else:
                out.append([self.word[i], self.start[i], self.end[i]])
        return tuple(tuple(s) for s in out)


@dataclass(frozen=True)
class Grounding:
    """Where a value stands on a page.

    outcome : "exact", "normalised" (how says by what), "similar" (misspelt: the most similar run, asked for by an
        option), "scattered" (its words are there, not as one run), "computed", "absent", "none" (no value)
    how : tuple of str
    runs : tuple of (first row, last row), in reading order: every place of the best rank, none inside another; for
        "scattered" the segments
    """
    outcome: str
    how: tuple = ()
    runs: tuple = ()

    @property
    def grounded(self):
        """The value stands on the page as one run of words; bool."""
        return self.outcome in ("exact", "normalised", "similar")


def ground(rows, field, text, *, computed=False, similar=False):
    """Finds a value on a page.

    Parameters
    ----------
    rows : Rows
    field : Field
    text : str or None, the value
    computed : bool; the labelling model says that the value is not printed
    similar : bool; a text or code that is not there is matched to the most similar run (dx_labels.similar)

    Returns
    -------
    Grounding

    Rule
    ----
    Places with the value's letters and digits win over places that only say the same number or day, and these over
    places that say it after OCR slips are mended; all places of the best of these ranks are kept. The outcome is exact
    when one of them is the value's text as it is. A run never begins or ends with a row without letters and digits,
    and of overlapping places the surer, then the shorter, then the earlier stays.
    """
    if text is None or not text.strip():
        return Grounding("none")
    if computed:
        return Grounding("computed", ("said by the labelling model",))
    value = prepare(field, text)
    return find(rows, value) or explain(rows, value, similar=similar)


def find(rows, value):
    """The places where a prepared Value is printed; Grounding, or None when it is not."""
    found = _spelled(rows, value) if value.key else _unkeyed(rows, value)
    if not found and value.kind in ("date", "amount", "number"):
        found = _read(rows, value)
    return _best(found) if found else None


def explain(rows, value, *, similar=False):
    """Why a Value is not printed as it is: similar (where asked for), computed, scattered or absent; Grounding."""
    if similar and value.kind in ("text", "code"):
        run, distance = most_similar(rows.keys, value.key)
        if run is not None:
            return Grounding("similar", (f"{distance} of {len(value.key)} characters differ",), (run,))
    if value.kind in ("amount", "number") and value.readings:
        terms = _computed(rows, value)
        if terms:
            return Grounding("computed", (terms,))
    segments = _segments(rows.keys, value.key)
    return Grounding("scattered", ("not one run",), segments) if segments else Grounding("absent")


def _spelled(rows, value):
    """Runs whose letters and digits are the value's: (rank, length, first, last, how)."""
    keys, wanted, found = rows.keys, value.key, []
    for first, own in enumerate(keys):
        if not own or not wanted.startswith(own):
            continue
        done = len(own)
        last = first
        while done < len(wanted) and last + 1 < len(keys) and wanted.startswith(keys[last + 1], done):
            last += 1
            done += len(keys[last])
        if done == len(wanted):
            while not keys[last]:
                last -= 1
            match = compare(value, rows.text(first, last), rows.order)
            if match:
                found.append((match.rank, last - first, first, last, match.how))
    return found


def _unkeyed(rows, value):
    """Places of a value without letters and digits: rows of exactly that text."""
    return [(EXACT, 0, i, i, ()) for i, t in enumerate(rows.texts) if t == value.text.strip()]


def _read(rows, value):
    """Runs that say the same number or day."""
    date, found = value.kind == "date", []
    longest = LONGEST_DATE if date else LONGEST_AMOUNT
    wanted = _figures_wanted(value)
    for first, own in enumerate(rows.keys):
        if not wanted or not _may_begin(own, date, rows.texts[first]):
            continue
        figures = ""
        for last in range(first, min(first + longest, len(rows))):
            if rows.visual[last] != rows.visual[first] and not date:
                break
            figures += rows.figures[last]
            if not rows.keys[last] and rows.texts[last] not in ("-", ")", "("):
                continue
            if not any(all(part in figures for part in parts) for parts in wanted):
                continue
            match = compare(value, rows.text(first, last), rows.order)
            if match:
                found.append((match.rank, last - first, first, last, match.how))
    return found


def _figures_wanted(value):
    """For each reading the figures that a run must hold to say it, OCR slips counted as figures; tuple of tuples."""
    if value.kind == "date":
        return tuple((str(d.day), "" if d.year is None else f"{d.year % 100:02d}") for d in value.readings)
    return tuple((str(abs(number)).rstrip("0"),) for number, _ in value.readings)


def _may_begin(own, date, text):
    if any("0" <= c <= "9" for c in own):
        return True
    if date:
        return own in MONTHS or without_accents(own) in MONTHS or own in ("O", "L", "I")
    return text[:1] in ("(", "-", "\u2212", "\u2013") or own in ("O", "L", "I", "S")


def _best(found):
    """The places of the best rank, none overlapping another."""
    best = min(rank for rank, *_ in found)
    level = SPELLED if best <= SPELLED else best
    kept = []
    for rank, _, first, last, how in sorted(found):
        if rank <= level and all(last < a or b < first for _, a, b, _ in kept):
            kept.append((rank, first, last, how))
    kept.sort(key=lambda k: k[1])
    runs = tuple((first, last) for _, first, last, _ in kept)
    if best == EXACT:
        return Grounding("exact", (), runs)
    return Grounding("normalised", min((k for k in kept if k[0] == best), key=lambda k: (len(k[3]), k[1]))[3], runs)


def _computed(rows, value):
    """'a + b - c' when the value is a sum or difference of two or three amounts printed in rows of their own (with
    cents, where the value has cents; an amount printed once counts once); or ''."""
    printed, count = {}, {}
    for text in rows.texts:
        if any("0" <= c <= "9" for c in text):
            for reading in read_amount(text, value.field.decimal).values:
                pair = reduced(reading)
                if pair[0] > 0 and (not value.cents or "." in reading):
                    printed.setdefault(pair, reading)
                    count[pair] = count.get(pair, 0) + 1
    decimals = max([scale for _, scale in (*printed, *value.readings)], default=0)
    unit = [10 ** k for k in range(decimals + 1)]  # exact: whole numbers
    whole = {n * unit[decimals - s]: reading for (n, s), reading in printed.items()}
    often = {n * unit[decimals - s]: times for (n, s), times in count.items()}
    for n, s in value.readings:
        terms = _terms(n * unit[decimals - s], sorted(whole), often)
        if terms:
            first, *others = terms
            return whole[first] + "".join(f" {'+' if t > 0 else '-'} {whole[abs(t)]}" for t in others)
    return ""


def _terms(target, numbers, often):
    """[a, ±b] or [a, ±b, ±c] that add up to target, each number used at most as often as it is printed; or None."""
    def fits(*terms):
        return all(abs(t) in often and [abs(u) for u in terms].count(abs(t)) <= often[abs(t)] for t in terms)

    for a in numbers:
        b = target - a
        if b and fits(a, b):
            return [a, b]
    for i, a in enumerate(numbers if len(numbers) <= MOST_TERMS else ()):
        for b in numbers[i:]:
            for first, second in ((a, b), (b, -a)):  # two added, or a smaller one taken from a larger one
                third = target - first - second
                if third and abs(third) in often and fits(first, second, third):
                    return [first, second, third]
    return None


def _segments(keys, wanted):
    """The runs of rows that together spell the value, longest first match, at most four; () when they do not."""
    if len(wanted) < 4:
        return ()
    used, parts, done = [False] * len(keys), [], 0
    while done < len(wanted):
        best = (0, 0, 0)
        for first, own in enumerate(keys):
            if not own or used[first] or not wanted.startswith(own, done):
                continue
            size, last = len(own), first
            while last + 1 < len(keys) and not used[last + 1] and wanted.startswith(keys[last + 1], done + size):
                last += 1
                size += len(keys[last])
            while not keys[last]:
                last -= 1
            if size > best[0]:
                best = (size, first, last)
        size, first, last = best
        if size < 3 and done + size < len(wanted) or size == 0 or len(parts) == MOST_SEGMENTS:
            return ()
        parts.append((first, last))
        used[first:last + 1] = [True] * (last + 1 - first)
        done += size
    return tuple(parts)
