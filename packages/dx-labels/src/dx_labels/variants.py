"""Variants of a labelled page for training: its dates rewritten, and lines that hold no value left out.

A variant is a page like any other (words and labels), made once; training takes one in place of the page in a share of
the epochs (TrainSettings.variant_share). Draws are numbers of a SplitMix64 stream named after the page, so a page's
variants depend on (seed, page) alone.
"""
from dataclasses import replace

import numpy as np

from .below import encode_page, substream, uniform64
from .dates import LENGTHS, read_date
from .month_names import names_of

DATE_FORMS = (  # how documents print a day; {m} has two figures, {M} the short and {L} the long name of the month
    "{d}/{m}/{y}", "{d1}/{m1}/{y}", "{d}/{m}/{y2}", "{d}-{m}-{y}", "{d}-{m}-{y2}", "{d}.{m}.{y}", "{y}-{m}-{d}",
    "{y}{m}{d}", "{y}/{m}/{d}", "{d}-{M}-{y}", "{d}-{M}-{y2}", "{d}{M}{y}", "{d1} {M} {y}", "{d} {M} {y}",
    "{d1} {L} {y}", "{M} {d1}, {y}", "{L} {d1}, {y}", "{d} {M} {y2}", "{d}/{M}/{y}", "{d} / {m} / {y}", "{M} {d},{y}")
LOWER_SHARE = 0.3  # of month names that are not all in capitals
LEAST_DROPPED, MOST_DROPPED = 0.05, 0.3  # probability that a line goes
LEAST_ROWS = 10  # a variant has at least so many rows
FAR = 2 ** 31  # behind every character
YEARS = (2005, 2030)  # a drawn year lies here where the label's own year is not known


class Draws:
    """The random numbers of one page, one after the other."""

    def __init__(self, seed, name):
        key = substream(substream(seed, "variants"), name.encode("utf-8", "backslashreplace").decode())
        self._key, self._left, self._block = key, [], 0

    def share(self):
        """A multiple of 2^-53 in [0, 1); float."""
        if not self._left:
            block = np.empty(256)
            uniform64(substream(self._key, str(self._block)), block)
            self._block += 1
            self._left = block[::-1].tolist()
        return self._left.pop()

    def below(self, n):
        """A whole number from 0 to n - 1."""
        return min(int(self.share() * n), n - 1)


def page_variants(page, encoded, labels, schema, encoding, seed):
    """Up to three variants of a page: dates rewritten, lines dropped, both.

    Parameters
    ----------
    page, encoded : Page and EncodedPage
    labels : list of Label, the page's
    schema : Schema
    encoding : Encoding
    seed : int

    Returns
    -------
    list of (Page, EncodedPage, labels); empty for a turned page
    """
    if page.rotation or not page.words:
        return []
    draws, made = Draws(seed, page.id), []
    dated = redate(page, labels, schema, draws)
    if dated is not None:
        made.append((dated[0], encode_page(dated[0], encoding), dated[1]))
    for base in [(page, encoded, labels), *made[:1]]:
        shorter = drop_lines(*base, draws)
        if shorter is not None:
            made.append((shorter[0], encode_page(shorter[0], encoding), shorter[1]))
    return made


def redate(page, labels, schema, draws):
    """(Page, labels) with every place of every date rewritten in one form drawn for it, each value as a day of its own;
    None where there is no date, or where a word holds two of them."""
    found = [(number, label) for number, label in enumerate(labels)
             if label.state == "value" and schema.field(label.field).type == "date"]
    if not found:
        return None
    form = DATE_FORMS[draws.below(len(DATE_FORMS))]
    capitals = draws.share() >= LOWER_SHARE
    edits, values = [], {}
    for number, label in found:
        text = draw_date(label.value, schema.field(label.field), form, capitals, draws)
        values[number] = text
        edits += [(run, text) for run in label.runs]
    moved = rewrite(page, edits)
    if moved is None:
        return None
    new, place = moved
    out = []
    for number, label in enumerate(labels):
        if number in values:
            out.append(replace(label, value=values[number], runs=tuple(place[run] for run in label.runs)))
            continue
        runs = tuple(moved_spans(run, place) for run in label.runs)
        if None in runs:
            return None
        out.append(replace(label, runs=runs))
    return new, out


def draw_date(text, field, form, capitals, draws):
    """A day as text, its year within two years of the one it stands for; str."""
    known = [d.year for d in read_date(text, field.date_order).values if d.year is not None]
    first = known[0] if known else YEARS[0] + draws.below(YEARS[1] - YEARS[0] + 1)
    year = max((first if first >= 100 else 2000 + first) + draws.below(5) - 2, 1)
    month = 1 + draws.below(12)
    day = 1 + draws.below(min(LENGTHS[month - 1], 28))
    languages = field.languages or ("en",)
    names = names_of(languages[draws.below(len(languages))])[month - 1]
    long, short = names[0], names[1] if len(names) > 1 else names[0]
    if not capitals:
        long, short = long.title(), short.title()
    return form.format(d=f"{day:02d}", d1=day, m=f"{month:02d}", m1=month, y=f"{year:04d}", y2=f"{year % 100:02d}",
                       M=short, L=long)


def rewrite(page, edits):
    """The page with the text of spans replaced.

    Parameters
    ----------
    page : Page
    edits : list of (run, text), a run a tuple of (word, start, end); the text's words take the place of the run's, what
        stands before and behind the run in its first and last word stays

    Returns
    -------
    (Page, place) or None when two runs share a word; place: dict, old run → new run, and old word → (new word, limit,
    new word, limit, shift): spans that end at the first limit lie in the first word, spans that begin at the second one
    in the second word, moved by `shift`
    """
    first_words, gone = {}, {}
    for run, text in dict.fromkeys(edits):
        if any(w in first_words or w in gone for w, _, _ in run):
            return None
        first_words[run[0][0]] = (run, text)
        gone |= {w: True for w, _, _ in run[1:]}
    words, place = [], {}
    for number, word in enumerate(page.words):
        if number in gone:
            continue
        if number not in first_words:
            place[number] = (len(words), FAR, len(words), FAR, 0)
            words.append(word)
            continue
        run, text = first_words[number]
        (w0, begin, _), (w1, _, end) = run[0], run[-1]
        head, tail = word.text[:begin], page.words[w1].text[end:]
        tokens, at = text.split(" "), len(words)
        words += _set(page, word, page.words[w1], [w for w, _, _ in run], head, tokens, tail)
        last = len(words) - 1
        shift = len(tokens[-1]) + (len(head) if last == at else 0) - end
        place[run] = tuple((at + i, len(head) if i == 0 else 0, (len(head) if i == 0 else 0) + len(token))
                           for i, token in enumerate(tokens))
        place[w0] = (at, begin, last, FAR, 0)
        place[w1] = (at, begin if w0 == w1 else -1, last, end, shift)
    return replace(page, words=tuple(words), extra={}), place


def _set(page, first, last, numbers, head, tokens, tail):
    """The words that take a run's place: its box, as much wider or narrower as the text is longer or shorter."""
    texts = list(tokens)
    texts[0] = head + texts[0]
    texts[-1] += tail
    old = 0
    for w in numbers:
        old += len(page.words[w].text) + 1
    new = len(" ".join(texts)) + 1
    x0, y0, _, y1 = first.box
    width = max(last.box[2] - x0, first.box[2] - x0)
    x1 = min(x0 + width * new / old, page.width)
    out, done = [], 0
    for text in texts:
        a, b = x0 + (x1 - x0) * (done / new), x0 + (x1 - x0) * ((done + len(text)) / new)
        out.append(replace(first, text=text, box=(a, y0, min(max(a, b), page.width), y1)))
        done += len(text) + 1
    return out


def moved_spans(run, place):
    """A run's spans on the rewritten page; None when a rewritten text cut them."""
    if run in place:
        return place[run]
    out = []
    for word, start, end in run:
        if word not in place:
            return None
        first, upto, second, since, shift = place[word]
        if end <= upto:
            out.append((first, start, end))
        elif start >= since:
            out.append((second, start + shift, end + shift))
        else:
            return None
    return tuple(out)


def drop_lines(page, encoded, labels, draws):
    """(Page, labels) without some of the lines that hold no value, each dropped with one probability drawn for it;
    None when less than LEAST_ROWS rows would be left or nothing goes."""
    line, rows = {}, {}
    for word, row in zip(encoded.word.tolist(), encoded.row.tolist()):
        line.setdefault(word, row)
        rows[row] = rows.get(row, 0) + 1
    kept = {line[word] for label in labels for run in label.runs for word, _, _ in run}
    p = LEAST_DROPPED + (MOST_DROPPED - LEAST_DROPPED) * draws.share()
    drops = {row: draws.share() < p and row not in kept for row in sorted(rows)}
    left = [number for number in range(len(page.words)) if not drops[line[number]]]
    kept_rows = sum(n for row, n in rows.items() if not drops[row])  # exact: whole numbers
    if len(left) == len(page.words) or kept_rows < LEAST_ROWS:
        return None
    place = {old: new for new, old in enumerate(left)}
    out = [replace(label, runs=tuple(tuple((place[w], a, b) for w, a, b in run) for run in label.runs))
           for label in labels]
    return replace(page, words=tuple(page.words[i] for i in left), extra={}), out
