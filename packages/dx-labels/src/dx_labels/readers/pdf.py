"""The text layer of PDF files, through pypdfium2 (extra `pdf`): words built from the characters' places."""
import ctypes
import math

from .base import ReaderError, document_name, make_page, right_angle, usual

NAME = "pdfium"
SPACES = frozenset(" \x00\t\n\x0b\x0c\r\u00a0\u202f\u3000") | frozenset(map(chr, range(0x2000, 0x200A)))
HYPHENS = frozenset("\x02\u00ad\ufffe")  # as pdfium gives a hyphen at a line's end
GAP, SAME = 0.3, 0.04  # shares of a height: a gap that parts words; a step of the grid on which equal print is found


def library():
    """(pypdfium2, its raw functions, version); ReaderError that says how to install it."""
    try:
        import pypdfium2
        import pypdfium2.raw as raw
    except ImportError:
        raise ReaderError("reading PDF files needs pypdfium2: pip install 'dx-labels[pdf]'") from None
    return pypdfium2, raw, f"pypdfium2 {pypdfium2.version.PYPDFIUM_INFO}"


def open_pdf(path, password=None):
    """The opened file; ReaderError for one that is encrypted, broken or no PDF."""
    pypdfium2, _, _ = library()
    try:
        return pypdfium2.PdfDocument(path, password=password)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise ReaderError(f"{path}: encrypted: it opens with a password alone") from None
        raise ReaderError(f"{path}: no PDF file, or a broken one ({error})") from None


def read(path, problems, *, ocr=None, password=None):
    """The pages of a PDF file as they are shown: the crop box alone, turned as the file says; points of 1/72 inch.

    Text printed twice at one place (a poor man's bold) counts once; ligatures are given as the letters they stand for
    where the font says so, otherwise as U+FFFD, which Page.unmapped_glyphs counts. A word broken by a hyphen at a
    line's end stays two words as printed.

    Parameters
    ----------
    ocr : callable (page of pypdfium2, number) → Page or None, asked for pages without text; None: they are named in
        problems and given without words
    password : str or None

    Yields
    ------
    Page

    Raises
    ------
    ReaderError: encrypted, broken, or no PDF; pypdfium2 missing
    """
    _, raw, version = library()
    with open_pdf(path, password) as pdf:
        for number in range(len(pdf)):
            try:
                page = pdf[number]
            except Exception as error:  # pdfium names no narrower kind for a page that cannot be loaded
                problems.append(f"{path}: page {number}: {error}")
                continue
            made = _page(raw, version, path, number, page, problems, ocr)
            page.close()
            if made is not None:
                yield made


def _page(raw, version, path, number, page, problems, ocr):
    crop, turn = page.get_cropbox(), page.get_rotation()
    width, height = crop[2] - crop[0], crop[3] - crop[1]
    shown = (height, width) if turn in (90, 270) else (width, height)
    letters, turns = _letters(raw, page)
    if not letters and ocr is not None:
        return ocr(page, number)
    if not letters:
        problems.append(f"{path}: page {number} has no text layer: --ocr reads it through Tesseract")
    words, hidden = [], 0
    for word in _words(letters):
        box = _shown(word["box"], crop, turn)
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        if 0 <= middle[0] <= shown[0] and 0 <= middle[1] <= shown[1]:
            angle = (word["turn"] + turn) % 360
            words.append({"text": word["text"], "box": box, **({"angle": angle} if angle else {})})
        else:
            hidden += 1
    extra = {"words_outside_crop": hidden} if hidden else {}
    return make_page(path, number, shown, words, problems, reader=NAME, version=version, unit="pt",
                     rotation=(usual(turns) + turn) % 360, document=document_name(path), extra=extra)


def _letters(raw, page):
    """(letters, turns): (text, (left, bottom, right, top), turn) of each character in the file's own coordinates, a
    None where words part; what pdfium made up (spaces between far words) parts words too."""
    text = raw.FPDFText_LoadPage(page)
    letters, turns, seen = [], [], set()
    box, height = raw.FS_RECTF(), 0.0
    unicode, loose, angle_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetCharAngle
    high = None
    try:
        for index in range(raw.FPDFText_CountChars(text)):
            code = unicode(text, index)
            if 0xD800 <= code <= 0xDBFF:
                high = code
                continue
            if 0xDC00 <= code <= 0xDFFF and high is not None:
                code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
            high = None
            sign = chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
            if sign in SPACES:
                letters.append(None)
                continue
            if not loose(text, index, ctypes.byref(box)):
                continue
            if sign in HYPHENS:
                sign = "-"
            turn = right_angle(math.floor(angle_of(text, index) * 57.29577951308232 + 0.5))
            height = max(abs(box.top - box.bottom) if turn in (0, 180) else abs(box.right - box.left), 0.01)
            cell = height * SAME
            x, y = math.floor(box.left / cell + 0.5), math.floor(box.bottom / cell + 0.5)
            if any((sign, a, b) in seen for a in (x - 1, x, x + 1) for b in (y - 1, y, y + 1)):
                continue
            seen.add((sign, x, y))
            letters.append((sign, (box.left, box.bottom, box.right, box.top), turn))
            turns.append(turn)
    finally:
        raw.FPDFText_ClosePage(text)
    return (letters if turns else []), turns


def _words(letters):
    """Words {"text", "box", "turn"} of letters that follow one another along their direction without a gap."""
    word, last = None, None
    for letter in letters:
        if letter is None or (last is not None and not _follows(last, letter)):
            if word:
                yield word
            word = None
        if letter is None:
            last = None
            continue
        sign, (left, bottom, right, top), turn = last = letter
        if word is None:
            word = {"text": sign, "box": (left, bottom, right, top), "turn": turn}
        else:
            a, b, c, d = word["box"]
            word["text"] += sign
            word["box"] = (min(a, left), min(b, bottom), max(c, right), max(d, top))
    if word:
        yield word


def _follows(last, letter):
    """Does a letter stand where the one before it ends, on its line and turned like it?"""
    (_, (l0, b0, r0, t0), turn), (_, (l1, b1, r1, t1), other) = last, letter
    if turn != other:
        return False
    if turn in (0, 180):
        height, gap = t0 - b0, (l1 - r0 if turn == 0 else l0 - r1)
        return -2 * height < gap <= GAP * height and min(t0, t1) - max(b0, b1) > 0
    height, gap = r0 - l0, (b0 - t1 if turn == 90 else b1 - t0)
    return -2 * height < gap <= GAP * height and min(r0, r1) - max(l0, l1) > 0


def _shown(box, crop, turn):
    """A box of the file's coordinates (y up) as [x0, y0, x1, y1] of the page as it is shown (y down)."""
    width, height = crop[2] - crop[0], crop[3] - crop[1]
    x0, x1, y0, y1 = box[0] - crop[0], box[2] - crop[0], crop[3] - box[3], crop[3] - box[1]
    if turn == 90:
        x0, y0, x1, y1 = height - y1, x0, height - y0, x1
    elif turn == 180:
        x0, y0, x1, y1 = width - x1, height - y1, width - x0, height - y0
    elif turn == 270:
        x0, y0, x1, y1 = y0, width - x1, y1, width - x0
    return [round(v, 3) for v in (x0, y0, x1, y1)]
