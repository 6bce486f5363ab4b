"""Small files of every form the page readers know, made here: the same two lines, "Invoice No. 12" and "Total 8,20"."""
import json

WORDS = [("Invoice", 20, 40, 60, 10, 0), ("No.", 62, 40, 20, 10, 0), ("12", 84, 40, 12, 10, 0),
         ("Total", 20, 80, 30, 10, 1), ("8,20", 60, 80, 24, 10, 1)]  # text, x, y, width, height, line
WIDTH, HEIGHT = 200, 100


def pdf(*pages, trailer=b""):
    """A PDF file with these pages: (content stream, "/MediaBox … /Rotate …") each; bytes. Font F1 is Helvetica."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", None, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for content, settings in pages:
        data = content.encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data))
        objects.append(b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R %s >>"
                       % (len(objects), settings.encode()))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + (b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n"
                  % (len(objects) + 1, trailer, start))


def text(x, y, words, size=10, turn="1 0 0 1"):
    """The content that prints words at (x, y), y up; `turn` are the first four numbers of the text matrix."""
    escaped = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F1 {size} Tf {turn} {x} {y} Tm ({escaped}) Tj ET\n"


def hocr():
    lines = {0: [], 1: []}
    for word, x, y, w, h, line in WORDS:
        lines[line].append(f"<span class='ocrx_word' title='bbox {x} {y} {x + w} {y + h}; x_wconf 93'>{word}</span>")
    body = "".join(f"<span class='ocr_line' title='bbox 0 0 1 1'>{' '.join(v)}</span><br>" for v in lines.values())
    return ("<!DOCTYPE html><html><head><meta name='ocr-system' content='tesseract 5.3.0'></head><body>"
            f"<div class='ocr_page' title='image \"a.png\"; bbox 0 0 {WIDTH} {HEIGHT}; ppageno 0'>{body}</div>"
            "</body></html>").encode()


def alto():
    lines = {0: [], 1: []}
    for word, x, y, w, h, line in WORDS:
        lines[line].append(f'<String CONTENT="{word}" HPOS="{x}" VPOS="{y}" WIDTH="{w}" HEIGHT="{h}" WC="0.93"/>')
    body = "".join(f"<TextLine>{'<SP/>'.join(v)}</TextLine>" for v in lines.values())
    return ('<?xml version="1.0" encoding="UTF-8"?><alto xmlns="http://www.loc.gov/standards/alto/ns-v4#">'
            "<Description><MeasurementUnit>pixel</MeasurementUnit><OCRProcessing><softwareName>tesseract 5.3.0"
            f'</softwareName></OCRProcessing></Description><Layout><Page ID="p1" WIDTH="{WIDTH}" HEIGHT="{HEIGHT}">'
            f"<PrintSpace><TextBlock>{body}</TextBlock></PrintSpace></Page></Layout></alto>").encode()


def tsv():
    head = "level page_num block_num par_num line_num word_num left top width height conf text".split()
    rows = [head, [1, 1, 0, 0, 0, 0, 0, 0, WIDTH, HEIGHT, -1, ""]]
    for number, (word, x, y, w, h, line) in enumerate(WORDS):
        if number in (0, 3):
            rows.append([4, 1, 1, 1, line + 1, 0, x, y, 100, h, -1, ""])
        rows.append([5, 1, 1, 1, line + 1, number + 1, x, y, w, h, 93, word])
    return ("\n".join("\t".join(map(str, row)) for row in rows) + "\n").encode()


def corners(x, y, w, h, unit_x=1, unit_y=1):
    return [(x / unit_x, y / unit_y), ((x + w) / unit_x, y / unit_y), ((x + w) / unit_x, (y + h) / unit_y),
            (x / unit_x, (y + h) / unit_y)]


def azure():
    words, lines, at = [], [[], []], 0
    for word, x, y, w, h, line in WORDS:
        words.append({"content": word, "polygon": [v for p in corners(x, y, w, h) for v in p], "confidence": 0.93,
                      "span": {"offset": at, "length": len(word)}})
        lines[line].append({"offset": at, "length": len(word)})
        at += len(word) + 1
    page = {"pageNumber": 1, "angle": 0.2, "width": WIDTH, "height": HEIGHT, "unit": "pixel", "words": words,
            "lines": [{"content": "", "spans": [{"offset": v[0]["offset"], "length": v[-1]["offset"] + v[-1]["length"]
                                                 - v[0]["offset"]}]} for v in lines]}
    return json.dumps({"status": "succeeded", "analyzeResult": {"apiVersion": "2024-11-30", "pages": [page]}}).encode()


def form_recognizer():
    lines = [{"words": []}, {"words": []}]
    for word, x, y, w, h, line in WORDS:
        box = [v for p in corners(x, y, w, h) for v in p]
        lines[line]["words"].append({"text": word, "boundingBox": box, "confidence": 0.93})
    page = {"page": 1, "angle": 0, "width": WIDTH, "height": HEIGHT, "unit": "pixel", "lines": lines}
    return json.dumps({"analyzeResult": {"version": "2.1.0", "readResults": [page]}}).encode()


def google():
    content, tokens, lines = "", [], [[None, None], [None, None]]
    for word, x, y, w, h, line in WORDS:
        start, content = len(content), content + word + " "
        segment = {"endIndex": str(len(content))} | ({"startIndex": str(start)} if start else {})
        lines[line] = [start if lines[line][0] is None else lines[line][0], len(content)]
        tokens.append({"layout": {"textAnchor": {"textSegments": [segment]}, "confidence": 0.93, "boundingPoly": {
            "normalizedVertices": [{"x": a, "y": b} for a, b in corners(x, y, w, h, WIDTH, HEIGHT)]}}})
    page = {"pageNumber": 1, "dimension": {"width": WIDTH, "height": HEIGHT, "unit": "pixels"}, "tokens": tokens,
            "lines": [{"layout": {"textAnchor": {"textSegments": [{"startIndex": str(a), "endIndex": str(b)}]}}}
                      for a, b in lines]}
    return json.dumps({"mimeType": "application/pdf", "text": content, "pages": [page]}).encode()


def textract():
    blocks = [{"BlockType": "PAGE", "Id": "p", "Page": 1}]
    for line in (0, 1):
        blocks.append({"BlockType": "LINE", "Id": f"l{line}", "Page": 1, "Relationships": [
            {"Type": "CHILD", "Ids": [f"w{n}" for n, w in enumerate(WORDS) if w[5] == line]}]})
    for number, (word, x, y, w, h, _) in enumerate(WORDS):
        geometry = {"BoundingBox": {"Left": x / WIDTH, "Top": y / HEIGHT, "Width": w / WIDTH, "Height": h / HEIGHT},
                    "Polygon": [{"X": a, "Y": b} for a, b in corners(x, y, w, h, WIDTH, HEIGHT)]}
        blocks.append({"BlockType": "WORD", "Id": f"w{number}", "Page": 1, "Text": word, "Confidence": 93.0,
                       "Geometry": geometry})
    return json.dumps({"DetectDocumentTextModelVersion": "1.0", "Blocks": blocks}).encode()


def doctr():
    lines = [{"words": []}, {"words": []}]
    for word, x, y, w, h, line in WORDS:
        lines[line]["words"].append({"value": word, "confidence": 0.93, "geometry": [
            [x / WIDTH, y / HEIGHT], [(x + w) / WIDTH, (y + h) / HEIGHT]]})
    page = {"page_idx": 0, "dimensions": [HEIGHT, WIDTH], "orientation": {"value": None, "confidence": None},
            "blocks": [{"lines": lines}]}
    return json.dumps({"pages": [page]}).encode()


def plain_pdf():
    content = "".join(text(x, HEIGHT - y - h, word) for word, x, y, _, h, _ in WORDS)
    return pdf((content, f"/MediaBox [0 0 {WIDTH} {HEIGHT}]"))


FILES = {"pdf": plain_pdf, "hocr": hocr, "alto": alto, "tesseract-tsv": tsv, "azure": azure, "google": google,
         "textract": textract, "doctr": doctr}
