"""Small charts as inline SVG."""

from .texts import share

COLOURS = ("#2f6fde", "#d97706", "#1f9d6b", "#b5399a", "#d1495b", "#0e8fa3", "#7a5cd6", "#7c8a15", "#a05a2c", "#50607a")
BLUE, GREEN, GREY, LINE = "#2f6fde", "#1f9d6b", "#5b6478", "#dfe3ea"


def _frame(width, height, left, bottom, ticks):
    """Opening tag, frame and labels; ticks: list of (x, y, anchor, text)."""
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img">',
             f'<path d="M{left} 10V{height - bottom}H{width - 10}" fill="none" stroke="{LINE}"/>']
    parts += [f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>' for x, y, anchor, text in ticks]
    return parts


def _path(points, colour, dash=""):
    if not points:
        return ""
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"{dash}/>'


def round_step(span):
    """The least round number of which four reach a span."""
    power = 1.0
    while power * 10 <= span / 4:
        power *= 10
    while power > span / 4:
        power /= 10
    return next((power * k for k in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if power * k * 4 >= span), power * 10)


def learning_curve(points, best=None):
    """Loss (left scale) and development score (right scale, 0 to 1) over the steps; best: the step whose weights were
    kept, or None."""
    if not points:
        return "<p>There is no log.</p>"
    width, height, left, bottom = 1040, 260, 46, 26
    last, loss_step = points[-1][0], round_step(max(max(p[1] for p in points), 1e-9))
    right, low, most = width - 50, height - bottom, 4 * loss_step

    def x(step):
        return left + (right - left) * step / max(last, 1)

    step = max(round_step(last), 1)
    ticks = [(left - 6, 10 + (low - 10) * (1 - k / 4) + 4, "end", f"{loss_step * k:g}") for k in range(5)]
    ticks += [(right + 6, 10 + (low - 10) * (1 - k / 4) + 4, "start", f"{k / 4:g}") for k in range(5)]
    ticks += [(x(step * k), height - 8, "middle", f"{step * k:g}") for k in range(5) if step * k <= last]
    scores = [(x(s), 10 + (low - 10) * (1 - v)) for s, _, v in points if v is not None]
    parts = _frame(width, height, left, bottom, ticks)
    if best:
        side, anchor = (x(best) - 6, "end") if x(best) > width / 2 else (x(best) + 6, "start")
        parts.append(f'<path d="M{x(best):.1f} 10V{low}" stroke="{GREY}" stroke-dasharray="3 3"/>'
                     f'<text x="{side:.1f}" y="{low / 2:.0f}" text-anchor="{anchor}">weights of step {best}</text>')
    parts.append(_path([(x(s), 10 + (low - 10) * (1 - loss / most)) for s, loss, _ in points], BLUE))
    parts.append(_path(scores, GREEN))
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{GREEN}"/>' for a, b in scores]
    parts.append(f'<text x="{left}" y="2" style="fill:{BLUE}">training loss</text>'
                 f'<text x="{right}" y="2" text-anchor="end" style="fill:{GREEN}">development score</text></svg>')
    return "".join(parts)


def reliability_chart(bins):
    """Share right against mean confidence, a dot a bin, its area by the number of values."""
    side, left, bottom = 170, 30, 24
    low, right = side - bottom, side - 10

    def place(p, q):
        return left + (right - left) * p, 10 + (low - 10) * (1 - q)

    ticks = [(left - 4, place(0, v)[1] + 4, "end", f"{v:g}") for v in (0, 0.5, 1)]
    ticks += [(place(v, 0)[0], side - 8, "middle", f"{v:g}") for v in (0, 0.5, 1)]
    parts = _frame(side, side, left, bottom, ticks)
    parts.append(_path([place(0, 0), place(1, 1)], LINE, ' stroke-dasharray="4 4"'))
    count = max(sum(b[2] for b in bins), 1)
    for _, _, n, confidence, right_share in bins:
        a, b = place(confidence, right_share)
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{3 + 9 * (n / count) ** 0.5:.1f}" fill="{BLUE}" '
                     f'fill-opacity=".65"><title>{n} values: confidence {confidence:.3f}, right {right_share:.3f}'
                     "</title></circle>")
    return "".join(parts) + "</svg>"


def threshold_chart(values, threshold):
    """Share right (green) and share kept (grey) of the values when the n surest are accepted; the threshold's line."""
    side, left, bottom = 170, 30, 24
    low, right = side - bottom, side - 10
    ticks = [(left - 4, 10 + (low - 10) * (1 - v) + 4, "end", f"{v:g}") for v in (0, 0.5, 1)]
    if not values:
        return "".join(_frame(side, side, left, bottom, ticks)) + "</svg>"
    first, span = values[-1][0], max(values[0][0] - values[-1][0], 1e-9)

    def place(confidence, q):
        return left + (right - left) * (confidence - first) / span, 10 + (low - 10) * (1 - q)

    ticks += [(left, side - 8, "start", share(first)), (right, side - 8, "end", share(values[0][0]))]
    parts, good = _frame(side, side, left, bottom, ticks), 0
    lines = ([], [])
    for n, (confidence, ok) in enumerate(values, 1):
        good += ok
        if n == len(values) or values[n][0] < confidence:
            lines[0].append(place(confidence, good / n))
            lines[1].append(place(confidence, n / len(values)))
    parts += [_path(lines[1], GREY), _path(lines[0], GREEN)]
    if threshold["threshold"] is not None:
        a, _ = place(threshold["threshold"], 0)
        parts.append(f'<path d="M{a:.1f} 10V{low}" stroke="#d1495b" stroke-dasharray="3 3"/>')
    return "".join(parts) + "</svg>"
