"""Reference of dx_kernels.reading: the rules with Python's stable sort."""
import numpy as np

from .text import words


def reading_order(box, line, offset, code):
    """(order, row), int32."""
    boxes, texts = [tuple(float(v) for v in b) for b in box], words(offset, code)

    def position(w):
        x0, y0, x1, y1 = boxes[w]
        return y0, x0, y1, x1, texts[w]

    lines, segments = {}, []
    for w in range(len(boxes)):
        lines.setdefault(int(line[w]) if line[w] >= 0 else (w,), []).append(w)
    for members in lines.values():
        members.sort(key=lambda w: (boxes[w][0], position(w)))
        extent = max(boxes[w][3] for w in members) - min(boxes[w][1] for w in members)
        one_row = extent <= 2 * max(boxes[w][3] - boxes[w][1] for w in members)
        segments += [members] if one_row else [[w] for w in members]
    items = []
    for members in segments:
        y0, y1 = min(boxes[w][1] for w in members), max(boxes[w][3] for w in members)
        items.append(((y0 + y1) / 2, min(boxes[w][0] for w in members), position(members[0]), y1 - y0, members))
    items.sort(key=lambda s: s[:3])
    rows = []
    for item in items:
        away = item[0] - rows[-1][0][0] if rows else None  # from the row's first segment
        if rows and (away < 0.5 * item[3] or away == 0):
            rows[-1].append(item)
        else:
            rows.append([item])
    order, row = [], []
    for r, items in enumerate(rows):
        for _, _, _, _, members in sorted(items, key=lambda s: s[1:3]):
            order += members
            row += [r] * len(members)
    return np.array(order, np.int32), np.array(row, np.int32)
