"""Turned words that a reader gave as single letters, joined again."""
from dataclasses import replace

from .pages import ROTATIONS, Word

GAP = 0.5  # of a letter's length


def join_letters(page, angle):
    """The page with its single letters of one angle joined to words.

    Parameters
    ----------
    page : Page
    angle : 90, 180 or 270, degrees by which the letters are turned clockwise; 0 for upright ones. Words that say
        another angle (extra["angle"]) are left alone, and so are words of several characters.

    Returns
    -------
    Page: letters that follow one another in reading direction, with a gap below half a letter, and that overlap across
    it by half of the smaller one, are one word with the box around them, at the place of its first letter; everything
    else is as it was. Lists in extra with an entry a word are dropped, since they no longer fit.
    """
    if angle not in ROTATIONS:
        raise ValueError(f"angle = {angle!r}: expected 0, 90, 180 or 270")
    letters = [i for i, w in enumerate(page.words) if len(w.text) == 1 and w.extra.get("angle", angle) == angle]
    letters.sort(key=lambda i: (*_along(page.words[i].box, angle), *_across(page.words[i].box, angle), i))
    runs = []
    for i in letters:
        for run in runs:
            if _follows(page.words[run[-1]].box, page.words[i].box, angle):
                run.append(i)
                break
        else:
            runs.append([i])
    joined = {run[0]: run for run in runs if len(run) > 1}
    if not joined:
        return page
    inner = {i for run in joined.values() for i in run[1:]}
    words = [_join([page.words[k] for k in joined[i]], angle) if i in joined else word
             for i, word in enumerate(page.words) if i not in inner]
    extra = {k: v for k, v in page.extra.items() if k not in ("labels", "groups", "entities", "links")}
    return replace(page, words=words, extra=extra)


def _along(box, angle):
    """(begin, end) in reading direction."""
    x0, y0, x1, y1 = box
    return {0: (x0, x1), 90: (y0, y1), 180: (-x1, -x0), 270: (-y1, -y0)}[angle]


def _across(box, angle):
    return (box[1], box[3]) if angle in (0, 180) else (box[0], box[2])


def _follows(box, after, angle):
    (a0, a1), (b0, b1) = _along(box, angle), _along(after, angle)
    (c0, c1), (d0, d1) = _across(box, angle), _across(after, angle)
    length = max(a1 - a0, b1 - b0)
    overlap = min(c1, d1) - max(c0, d0)
    return a0 < b0 and b0 - a1 < GAP * length and overlap >= 0.5 * min(c1 - c0, d1 - d0)


def _join(words, angle):
    box = (min(w.box[0] for w in words), min(w.box[1] for w in words),
           max(w.box[2] for w in words), max(w.box[3] for w in words))
    return Word("".join(w.text for w in words), box, words[0].line, {**words[0].extra, "angle": angle})
