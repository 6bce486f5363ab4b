"""The report of a training: one HTML file that needs nothing else (no network, no script)."""
from html import escape

from .charts import COLOURS, learning_curve, reliability_chart, threshold_chart
from .evaluation import place_of
from .texts import share

STYLE = """
:root{--ink:#1d2433;--soft:#5b6478;--line:#dfe3ea;
--paper:#fff;--back:#f5f6f9;--blue:#2f6fde;--green:#1f9d6b;--red:#d1495b}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 20px 80px}h1{font-size:26px;margin:0 0 4px}
h2{font-size:18px;margin:40px 0 12px}p{margin:6px 0}.soft{color:var(--soft)}code{font-size:13px}
.card{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:16px 18px;overflow-x:auto}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(106px,1fr));gap:10px;margin-top:20px}
.tile{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:10px 12px;
font-size:13px}.tile b{display:block;font-size:22px;font-weight:600}
.grid{display:grid;gap:16px;
grid-template-columns:repeat(auto-fit,minmax(330px,1fr))}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:6px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:500;font-size:13px}
tr:last-child td{border-bottom:0}.bar{display:inline-block;width:56px;height:8px;border-radius:4px;background:#e8ebf1;
vertical-align:middle;margin-left:8px;position:relative}
.bar i{position:absolute;left:0;top:0;bottom:0;border-radius:4px;
background:var(--green)}svg{display:block;max-width:100%;height:auto;overflow:visible;min-width:0}
svg text{font:11px system-ui,sans-serif;fill:#5b6478}
svg.page text{fill:#1d2433}.key span{display:inline-block;margin-right:14px;font-size:13px}.key i{display:inline-block;
width:11px;height:11px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.wide td,.wide th{white-space:normal;text-align:left}
.wide{align-self:start}table.narrow{width:auto}.narrow td,.narrow th{padding:6px 14px}
"""


def drawn_page(page, result, rows):
    """What the report draws of a page: its words, and the boxes of labelled and predicted values; dict."""
    boxes, wrong, names = [], [], list(result.fields)
    for row in rows:
        number = names.index(row.field)
        found = {place_of(v) for v in result.fields[row.field].values}
        gold = [run for runs in row.gold_places for run in runs]
        for runs in row.gold_places:
            hit = [run for run in runs if run in found]
            boxes += [_box(page, number, "both" if hit else "labelled", run) for run in hit or runs]
        boxes += [_box(page, number, "predicted", run) for run in sorted(found) if run not in gold]
        if row.words and not row.exactly():
            wrong.append([row.field, " · ".join(row.gold) or "–", " · ".join(row.predicted) or "–",
                          max(row.confidences, default=None)])
    words = [[w.text, list(w.box)] for w in page.words]
    return {"id": page.id, "width": page.width, "height": page.height, "words": words, "boxes": boxes, "wrong": wrong}


def _box(page, field, kind, run):
    inside = [page.words[w].box for w, _, _ in run]
    return {"field": field, "kind": kind, "box": [min(b[0] for b in inside), min(b[1] for b in inside),
                                                  max(b[2] for b in inside), max(b[3] for b in inside)]}


def report_html(name, answer, worst):
    """The whole report; str."""
    total, data = answer["scores"]["total"], answer["data"]
    body = [f"<h1>{escape(name)}</h1>", _made(answer), _tiles(answer),
            "<h2>Scores on the held-out pages, read once after training</h2>", _scores(answer),
            "<h2>What was taken for what</h2>", _confusion(answer["confusion"], list(answer["scores"]["fields"]))]
    if "continued" in answer:
        body.append(_continued(answer["continued"]))
    body += ["<h2>Confidence to accept</h2>", _thresholds(answer),
             "<h2>Learning</h2>",
             f'<div class="card">{learning_curve(answer["curve"], answer["model"]["best_step"])}</div>',
             "<h2>Does the confidence mean something?</h2>",
             '<p class="soft">Left: share right against the confidence stated, in tenths. Right: share right (green) '
             "and share of all values kept (grey), when only values above a confidence are accepted; red: the "
             "threshold.</p>", _reliability(answer),
             "<h2>Where the values stand</h2>", _grounding(answer["grounding"]),
             f"<h2>The {len(worst)} worst held-out pages</h2>" if worst else "<h2>No held-out page is wrong</h2>",
             *_worst(worst, list(answer["scores"]["fields"]))]
    body[3:3] = [f'<p class="soft">{escape(text)}</p>' for text in answer.get("warnings", ())]
    if data["held_out"] < 20:
        body.insert(3, f'<p class="soft">{data["held_out"]} held-out documents say little: read the intervals.</p>')
    title = f"{name}: F1 {total['words']['f1']:.3f}"
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{escape(title)}</title><style>{STYLE}</style><main>{''.join(body)}</main></html>\n")


def _made(answer):
    model, settings = answer["model"], answer["settings"]
    return (f'<p class="soft">Made by <code>dx train</code> {answer["version"]} (numerics '
            f'{answer["numerics_version"]}), seed {settings["seed"]}. Model <code>{model["sha256"][:16]}</code>, '
            f'{model["parameters"]:,} parameters, '
            f'weights of step {model["best_step"] or model["step"]}.</p>')


def _tiles(answer):
    data, total = answer["data"], answer["scores"]["total"]
    (low, high), (least, most) = total["words"]["f1_interval"], total["correct"]["interval"]
    tiles = [(f'F1 by words<br><span class="soft">{low:.2f}–{high:.2f}</span>', f"{total['words']['f1']:.3f}"),
             (f'fields right<br><span class="soft">{least:.2f}–{most:.2f}</span>', f"{total['correct']['value']:.3f}"),
             ("documents", f"{data['documents']:,}"), ("pages", f"{data['pages']:,}"), ("words", f"{data['words']:,}"),
             ("to train on", data["training"]), ("development", data["development"]), ("held out", data["held_out"]),
             ("left out", data["excluded"])]
    return ('<div class="tiles">' + "".join(f'<div class="tile"><b>{value}</b>{label}</div>' for label, value in tiles)
            + "</div>")


def _interval(one):
    low, high = one["interval"]
    return f'{one["value"]:.3f} <span class="soft">{low:.2f}–{high:.2f}</span>'


def _scores(answer):
    rows = ["<tr><th>field<th>F1 by words, 95 %<th>correct, 95 %<th>recall, 95 %<th>agreement, 95 %"
            "<th>F1 by text, 95 %<th>exact, 95 %"]
    fields = list(answer["scores"]["fields"].items()) + [("all", answer["scores"]["total"])]
    for name, s in fields:
        rows.append(f'<tr><td>{escape(name)}<td>{_f1(s["words"])}{_bar(s["words"]["f1"])}'
                    + "".join(f"<td>{_interval(s[k])}" for k in ("correct", "recall", "agreement"))
                    + f'<td>{_f1(s["text"])}<td>{_f1(s["exact"])}')
    return (f'<div class="card"><table>{"".join(rows)}</table></div><p class="soft">Correct: exactly the label\'s '
            "words, or no value on either side. Recall: the same of pages that have a label. Agreement: of pages where "
            "either side has a value. By text: letters and digits are equal to those of the value given, so a date "
            "given in another form than it is printed in is not equal. Intervals of shares are exact binomial ones; "
            "those of F1 come from drawing the held-out pages again, 2,000 times.</p>")


def _f1(one):
    low, high = one["f1_interval"]
    return f'{one["f1"]:.3f} <span class="soft">{low:.2f}–{high:.2f}</span>'


def _confusion(counts, fields):
    """A table: what was found in rows, what is labelled there in columns; right values green, wrong ones red."""
    wrong = [c for c in counts if not c["exact"]]
    if not wrong:
        return '<p class="soft">Every value that was found is right, and every labelled value was found.</p>'
    rows = [f for f in [*fields, None] if any(c["found"] == f for c in wrong)]
    columns = [f for f in [*fields, None] if any(c["labelled"] == f for c in wrong) or f is not None and f in rows]
    head = "".join(f"<th>{escape(f) if f is not None else 'nothing'}" for f in columns)
    lines, most = [f"<tr><th>found as ↓ · labelled →{head}"], max(c["count"] for c in wrong)
    for found in rows:
        cells = [f"<tr><td>{escape(found) if found is not None else 'not found'}"]
        for labelled in columns:
            own = [c for c in counts if (c["found"], c["labelled"]) == (found, labelled)]
            right, other = ([c["count"] for c in own if c["exact"] == exact] for exact in (True, False))
            text = [f'<span style="color:var(--green)">{n}</span>' for n in right]
            text += [f"{n}{' other words' if found == labelled else ''}" for n in other]
            shade = f' style="background:rgba(209,73,91,{0.1 + 0.3 * other[0] / most:.2f})"' if other else ""
            cells.append(f"<td{shade}>{', '.join(text) or '·'}")
        lines.append("".join(cells))
    return (f'<div class="card"><table class="narrow">{"".join(lines)}</table></div>'
            '<p class="soft">Green: right. "Other words": the value\'s place, with words too many or too few. Not '
            "found: labelled, and no value overlaps it. Fields without a mistake are left out.</p>")


def _bar(value):
    return f'<span class="bar"><i style="width:{100 * value:.0f}%"></i></span>'


def _continued(c):
    rows = ["<tr><th>field<th>before<th>after"]
    for name in c["fields"]:
        rows.append(f'<tr><td>{escape(name)}' + "".join(f'<td>{c[k]["fields"][name]["words"]["f1"]:.3f}'
                                                        for k in ("before", "after")))
    rows.append("<tr><td>all" + "".join(f'<td>{c[k]["total"]["words"]["f1"]:.3f}' for k in ("before", "after")))
    return (f'<h2>Old pages, before and after</h2><div class="card"><table>{"".join(rows)}</table></div>'
            f'<p class="soft">F1 by words on {c["documents"]} documents that neither model was trained on.</p>')


def _thresholds(answer):
    rows, pages = [], 0
    for name, t in answer["thresholds"].items():
        pages = t["pages"]
        cells = [f"<tr><td>{escape(name)}<td>{'none' if t['threshold'] is None else share(t['threshold'])}"]
        if t["threshold"] is None:
            why = t["statement"].partition(": no threshold: ")[2]
            cells.append(f'<td colspan="3" style="text-align:left">{escape(why)}')
        else:
            low, high = t["interval"]
            cells.append(f'<td>{t["right"]} of {t["count"]}<td>{low:.3f}–{high:.3f}<td>{t["recall"]:.3f}')
        rows.append("".join(cells))
    head = "<tr><th>field<th>accept from<th>values right<th>95 %<th>of all right values"
    return (f'<div class="card"><table class="narrow">{head}{"".join(rows)}</table></div><p class="soft">The lowest '
            f'confidence from which at least {escape(answer["settings"]["share"])} of at least '
            f'{answer["settings"]["least"]} values were right, chosen on these {pages} pages.</p>')


def _reliability(answer):
    cards = []
    for name, bins in answer["reliability"].items():
        cards.append(f'<div class="card"><b>{escape(name)}</b><div style="display:flex;gap:8px">'
                     f'{reliability_chart(bins)}{threshold_chart(answer["values"][name], answer["thresholds"][name])}'
                     "</div></div>")
    return f'<div class="grid">{"".join(cards)}</div>'


def _grounding(counts):
    kinds = [k for k in ("exact", "normalised", "similar", "scattered", "computed", "absent", "none", "not annotated")
             if any(k in own for own in counts.values())]
    rows = [f"<tr><th>field{''.join(f'<th>{k}' for k in kinds)}"]
    rows += [f"<tr><td>{escape(name)}{''.join(f'<td>{own.get(k, 0) or chr(8211)}' for k in kinds)}"
             for name, own in counts.items()]
    return f'<div class="card"><table>{"".join(rows)}</table></div>'


def _worst(worst, fields):
    key = "".join(f'<span><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{escape(name)}</span>'
                  for i, name in enumerate(fields))
    if worst:
        yield (f'<p class="key">{key}</p><p class="soft">Filled: labelled and found. Dashed: labelled, not found. '
               "Solid outline: found, not labelled.</p>")
    for page in worst:
        rows = "".join(f"<tr><td>{escape(f)}<td>{escape(g)}<td>{escape(p)}<td>{'–' if c is None else share(c)}"
                       for f, g, p, c in page["wrong"])
        yield (f'<div class="card" style="margin-bottom:16px"><b>{escape(page["id"])}</b><div class="grid">'
               f'<div>{_page_drawing(page)}</div><table class="wide"><tr><th>field<th>labelled<th>found<th>'
               f"confidence{rows}</table></div></div>")


def _page_drawing(page):
    width, height = page["width"], page["height"]
    scale = min(520 / width, 700 / height)
    parts = [f'<svg class="page" viewBox="0 0 {width * scale:.1f} {height * scale:.1f}" style="border:1px solid '
             f'#dfe3ea" width="{width * scale:.0f}" role="img" aria-label="page {escape(page["id"])}">']
    for text, (x0, y0, x1, y1) in page["words"]:
        size, length = max((y1 - y0) * scale * 0.85, 0.5), max((x1 - x0) * scale, 0.5)
        fit = f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"' if len(text) > 1 else ""
        parts.append(f'<text x="{x0 * scale:.1f}" y="{(y1 - 0.15 * (y1 - y0)) * scale:.1f}" '
                     f'style="font-size:{size:.1f}px"{fit}>{escape(_printable(text))}</text>')
    for box in page["boxes"]:
        x0, y0, x1, y1 = (v * scale for v in box["box"])
        colour = COLOURS[box["field"] % len(COLOURS)]
        look = {"both": f'fill="{colour}" fill-opacity=".25"', "labelled": 'fill="none" stroke-dasharray="4 3"',
                "predicted": 'fill="none"'}[box["kind"]]
        pad = 4.5 if box["kind"] == "labelled" else 2  # both outlines can be seen where fields are mixed up
        parts.append(f'<rect x="{x0 - pad:.1f}" y="{y0 - pad:.1f}" width="{x1 - x0 + 2 * pad:.1f}" '
                     f'height="{y1 - y0 + 2 * pad:.1f}" '
                     f'rx="3" stroke="{colour}" stroke-width="1.6" {look}/>')
    return "".join(parts) + "</svg>"


def _printable(text):
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
