"""The most similar run of words to a misspelt value. For training labels only, and only when asked for."""

MOST_DIFFERENT = 15  # of 100 characters of the longer text: two texts are similar when 100 d <= 15 max(lengths)
SHORTEST = 6  # characters; shorter values are too easily similar


def distances(wanted, pieces):
    """Edit distances (insert, delete, replace: 1 each) between a text and growing joins of pieces.

    Parameters
    ----------
    wanted : str, not empty
    pieces : iterable of str

    Yields
    ------
    (distance to the pieces so far, their length) after each piece. Bit-parallel (Myers 1999), exact.
    """
    size = len(wanted)
    full, top = (1 << size) - 1, 1 << (size - 1)
    where = {}
    for i, c in enumerate(wanted):
        where[c] = where.get(c, 0) | 1 << i
    plus, minus, distance, length = full, 0, size, 0
    for piece in pieces:
        for c in piece:
            equal = where.get(c, 0)
            vertical = equal | minus
            horizontal = (((equal & plus) + plus) ^ plus) | equal
            up = minus | ~(horizontal | plus) & full
            down = plus & horizontal
            distance += (up & top != 0) - (down & top != 0)
            up = (up << 1 | 1) & full
            down = down << 1 & full
            plus = down | ~(vertical | up) & full
            minus = up & vertical
        length += len(piece)
        yield distance, length


def most_similar(keys, wanted):
    """The most similar run of rows.

    Parameters
    ----------
    keys : list of str, letters and digits of each row
    wanted : str

    Returns
    -------
    ((first, last), distance), or (None, None) when no run is similar. Of equally similar runs (distance / longer
    length, compared exactly) the earliest, then the shortest.
    """
    size = len(wanted)
    if size < SHORTEST:
        return None, None
    longest = size * 100 // (100 - MOST_DIFFERENT)
    best = None  # (distance, longer length, run)
    for first in _likely(keys, wanted, longest):
        for last, (distance, length) in enumerate(distances(wanted, _growing(keys, first, longest)), first):
            longer = max(length, size)
            if keys[last] and 100 * distance <= MOST_DIFFERENT * longer and (
                    best is None or distance * best[1] < best[0] * longer):
                best = (distance, longer, (first, last))
    return (best[2], best[0]) if best else (None, None)


def _likely(keys, wanted, longest):
    """Rows at which a similar run may begin. Texts of distance d share at least max(lengths) - 1 - 2 d pairs of
    neighbouring characters, so that many of the next `longest` characters' pairs must be pairs of the value."""
    text, pairs = "".join(keys), {wanted[i:i + 2]: True for i in range(len(wanted) - 1)}
    seen = [0]
    for i in range(len(text) - 1):
        seen.append(seen[-1] + (text[i:i + 2] in pairs))
    least, begin = (100 - 2 * MOST_DIFFERENT) * len(wanted) - 100, 0
    for first, own in enumerate(keys):
        if own:
            end = min(begin + longest - 1, len(seen) - 1)
            if 100 * (seen[max(end, begin)] - seen[begin]) >= least:
                yield first
        begin = min(begin + len(own), len(seen) - 1)


def _growing(keys, first, longest):
    length = 0
    for k in keys[first:]:
        length += len(k)
        if length > longest:
            return
        yield k
