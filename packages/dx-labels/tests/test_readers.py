"""Readers of pages: what each makes of the same two lines, turned pages, crop boxes, doubled print, damaged files."""
import json
import random
import shutil
import tracemalloc

import dx_labels
import ocr_files
import pytest
from dx_labels import command
from dx_labels.below import read_documents
from dx_labels.page_import import document_names, import_pages
from dx_labels.readers import READERS, ReaderError, detect, read_file

TEXTS = [w[0] for w in ocr_files.WORDS]


def write(tmp_path, data, name="a.bin"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def read(path, **options):
    problems = []
    return list(read_file(path, problems, **options)), problems


@pytest.mark.parametrize("name", ocr_files.FILES)
def test_every_form_gives_the_same_words_at_the_same_places(name, tmp_path):
    path = write(tmp_path, ocr_files.FILES[name]())
    assert detect(path) == name
    (page,), problems = read(path)
    assert problems == [] and page.texts == TEXTS and page.rotation == 0
    assert page.id == "a/0" and page.document == "a" and page.number == 0
    scale = (1 / ocr_files.WIDTH, 1 / ocr_files.HEIGHT) if name == "textract" else (1, 1)
    assert (page.width, page.height) == (ocr_files.WIDTH * scale[0], ocr_files.HEIGHT * scale[1])
    assert page.extra["source"] == "a.bin" and set(page.extra["reader"]) == {"name", "version"} and page.extra["unit"]
    for word, (_, x, y, w, h, line) in zip(page.words, ocr_files.WORDS):
        if name == "pdf":  # its boxes are the font's
            assert abs(word.box[0] - x) < 1 and word.box[1] < y + h / 2 < word.box[3]
            continue
        expected = (x * scale[0], y * scale[1], (x + w) * scale[0], (y + h) * scale[1])
        assert word.box == pytest.approx(expected, abs=1e-9) and word.line == line
        assert word.extra["confidence"] == pytest.approx(0.93)


def test_an_older_analysis_of_azure(tmp_path):
    path = write(tmp_path, ocr_files.form_recognizer())
    (page,), problems = read(path)
    assert detect(path) == "azure" and page.texts == TEXTS and problems == []
    assert [w.line for w in page.words] == [0, 0, 0, 1, 1] and page.extra["reader"]["version"] == "2.1.0"


TURNS = {0: "1 0 0 1", 90: "0 -1 1 0", 180: "-1 0 0 -1", 270: "0 1 -1 0"}


@pytest.mark.parametrize("turn", TURNS)
def test_turned_text_keeps_its_words_and_says_its_turn(turn, tmp_path):
    content = ocr_files.text(100, 100, "Invoice No. 12", turn=TURNS[turn])
    (page,), _ = read(write(tmp_path, ocr_files.pdf((content, "/MediaBox [0 0 200 200]"))))
    assert page.texts == ["Invoice", "No.", "12"] and page.rotation == turn


@pytest.mark.parametrize("turn", (90, 180, 270))
def test_a_turned_page_is_given_as_it_is_shown(turn, tmp_path):
    """cases io-20: the same words for all four, each with the page's turn."""
    content = ocr_files.text(20, 80, "Invoice No. 12")
    (page,), _ = read(write(tmp_path, ocr_files.pdf((content, f"/MediaBox [0 0 200 100] /Rotate {turn}"))))
    assert page.texts == ["Invoice", "No.", "12"] and page.rotation == turn
    assert [w.extra["angle"] for w in page.words] == [turn] * 3
    assert (page.width, page.height) == ((100, 200) if turn in (90, 270) else (200, 100))
    x0, y0, x1, y1 = page.words[0].box
    near = {90: (y0, 20), 180: (200 - x1, 20), 270: (200 - y1, 20)}[turn]
    assert abs(near[0] - near[1]) < 1


def test_a_page_turned_against_its_text_reads_upright(tmp_path):
    content = ocr_files.text(100, 20, "Invoice No. 12", turn=TURNS[270])
    (page,), _ = read(write(tmp_path, ocr_files.pdf((content, "/MediaBox [0 0 200 200] /Rotate 90"))))
    assert page.rotation == 0 and page.words[0].box[0] < page.words[1].box[0]


def test_doubled_print_counts_once_and_repeated_letters_stay(tmp_path):
    content = "".join(ocr_files.text(x, y, "Bill 11") for x, y in ((20, 80), (20.3, 80), (20, 40)))
    (page,), _ = read(write(tmp_path, ocr_files.pdf((content, "/MediaBox [0 0 200 100]"))))
    assert page.texts == ["Bill", "11", "Bill", "11"]


def test_text_outside_the_crop_box_is_dropped_and_counted(tmp_path):
    """case io-22"""
    content = ocr_files.text(20, 700, "shown") + ocr_files.text(20, 100, "hidden")
    settings = "/MediaBox [0 0 600 800] /CropBox [0 600 600 800]"
    (page,), _ = read(write(tmp_path, ocr_files.pdf((content, settings))))
    assert page.texts == ["shown"] and page.height == 200 and page.extra["words_outside_crop"] == 1
    assert 90 < page.words[0].box[1] < 101


def test_pages_without_text_are_named_and_kept_empty(tmp_path):
    path = write(tmp_path, ocr_files.pdf(("", "/MediaBox [0 0 200 100]"),
                                         (ocr_files.text(20, 20, "x"), "/MediaBox [0 0 200 100]")))
    pages, problems = read(path)
    assert [p.texts for p in pages] == [[], ["x"]] and len(problems) == 1 and "page 0 has no text layer" in problems[0]


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="the program tesseract is not installed")
def test_a_scanned_page_goes_through_tesseract(tmp_path):
    path = write(tmp_path, ocr_files.plain_pdf(), "b.pdf")
    from dx_labels.readers import pdf, tesseract
    opened = pdf.open_pdf(path)
    picture = write(tmp_path, tesseract._picture(opened[0]), "c.pgm")
    (page,), problems = read(picture)
    assert problems == [] and page.texts == TEXTS and page.extra["reader"]["name"] == "tesseract"
    x0, y0, x1, y1 = page.words[0].box
    assert abs(x0 * 72 / 300 - 20) < 3 and page.extra["unit"] == "pixel"


def test_tesseract_that_is_missing_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReaderError, match="tesseract-ocr"):
        read(write(tmp_path, b"P5\n1 1\n255\n0"))


@pytest.mark.parametrize("data, message", [
    (b"", "an empty file"), (b"hello", "known by its first bytes"), (b"%PDF-1.4\nrubbish", "no PDF file, or a broken"),
    (b"<alto", "not XML"), (b"<!DOCTYPE alto [<!ENTITY a 'b'>]><alto/>", "document type declaration"),
    (b'{"Blocks": 5}', "Blocks is '5'"), (b'{"pages": [5], "blocks": 1}', "expected an object"),
    (b'{"analyzeResult": {}}', "neither"), (b'{"text": "a", "textAnchor": NaN}', "NaN"),
    (b"level\tpage_num\n", "the columns are"), (b"<html><div class='ocr_page'></div></html>", "not hOCR")])
def test_a_broken_file_is_named_with_what_is_wrong(data, message, tmp_path):
    with pytest.raises(ReaderError, match=message) as caught:
        read(write(tmp_path, data))
    assert "a.bin" in str(caught.value)


def test_an_encrypted_file_is_named_as_such(tmp_path):
    """Standard security handler, revision 2, whose check values fit no empty password."""
    lock = (b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >> "
            b"/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]")
    data = ocr_files.pdf((ocr_files.text(20, 20, "x"), "/MediaBox [0 0 200 100]"), trailer=lock)
    with pytest.raises(ReaderError, match="encrypted"):
        read(write(tmp_path, data))


@pytest.mark.parametrize("name", ocr_files.FILES)
def test_damaged_files_give_errors_or_pages_and_never_anything_else(name, tmp_path):
    whole = ocr_files.FILES[name]()
    chance = random.Random(f"damage/{name}")
    for round_ in range(60):
        data = bytearray(whole)
        for _ in range(1 + round_ % 4):
            at = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                del data[at:]
            elif kind == 1:
                data[at:at + 1] = b"-99999999999999999999"
            elif kind == 2:
                data[at:at + 8] = b""
            elif data:
                data[min(at, len(data) - 1)] = chance.randrange(256)
            data = data or bytearray(b" ")
        try:
            pages, _ = read(write(tmp_path, bytes(data)), format=name)
        except ReaderError:
            continue
        for page in pages:
            assert dx_labels.document_from_json(json.loads(json.dumps({"id": page.id, "width": page.width, "height":
                                                                      page.height, "words": []}))).pages


def test_a_library_that_is_missing_says_how_to_install_it(tmp_path, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(ReaderError, match=r"pip install 'dx-labels\[pdf\]'"):
        read(write(tmp_path, ocr_files.plain_pdf()))


def test_import_goes_on_past_a_bad_file_and_lists_it(tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", ocr_files.plain_pdf(), "a.pdf")
    write(tmp_path / "in", b"%PDF-1.4 rubbish", "b.pdf")
    write(tmp_path / "in", ocr_files.hocr(), "c.html")
    out = tmp_path / "pages.jsonl"
    answer = import_pages([tmp_path / "in"], out)
    assert answer["files"] == 3 and answer["pages"] == 2 and answer["failed"] == [str(tmp_path / "in" / "b.pdf")]
    assert [d.id for d in read_documents(out)] == ["a", "c"]


def test_the_same_name_in_two_folders_makes_two_documents(tmp_path):
    for folder in "xy":
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, ocr_files.plain_pdf(), "a.pdf")
    files = [tmp_path / "x" / "a.pdf", tmp_path / "y" / "a.pdf"]
    assert document_names(files) == ["x/a", "y/a"] and document_names(files[:1]) == ["a"]
    assert document_names([tmp_path / "a.pdf", tmp_path / "a.png"]) == ["a.pdf", "a.png"]


def test_the_memory_of_an_import_does_not_grow_with_the_pages(tmp_path):
    def peak(count):
        page = (ocr_files.text(20, 20, "some words on a page " * 4), "/MediaBox [0 0 600 100]")
        path = write(tmp_path, ocr_files.pdf(*[page] * count), f"{count}.pdf")
        tracemalloc.start()
        import_pages([path], tmp_path / "out.jsonl")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found
    peak(2)
    assert peak(200) < 2 * peak(20)


def test_the_command_reads_files_into_pages_and_projects(tmp_path, capfdbinary):
    path = write(tmp_path, ocr_files.plain_pdf(), "a.pdf")
    assert command.main(["import", str(path), "--quiet"]) == 0
    line = json.loads(capfdbinary.readouterr().out)
    assert line["id"] == "a/0" and line["reader"]["name"] == "pdfium"
    assert command.main(["import", str(path), "--out", str(tmp_path / "p.jsonl"), "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["words"] == 5
    assert command.main(["import", str(path), "--to", str(tmp_path / "project")]) == 0
    assert dx_labels.Project(tmp_path / "project").documents()[0].id == "a"
    assert command.main(["import", str(path), "--to", str(tmp_path / "project")]) == 1
    assert b"--replace" in capfdbinary.readouterr().err
    assert command.main(["import", "nothing.pdf"]) == 1
    assert command.main(["import", str(path), "--format", "pdff"]) == 2
    assert b"'pdf'" in capfdbinary.readouterr().err


def test_every_reader_is_in_the_help(capsys):
    assert command.main(["import", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in READERS)


@pytest.mark.parametrize("turn, letters", ((90, "Ninety"), (270, "yteniN")))
def test_io_28_turned_letters_are_joined_on_request(turn, letters, tmp_path):
    """Case io-28: six words of one letter at x 30, y 100 to 160 become one word, which says its angle (io-20)."""
    spans = [(sign, 30, 100 + 10 * i, 38, 109 + 10 * i) for i, sign in enumerate(letters)]
    spans.append(("flat", 60, 100, 90, 109))
    body = " ".join(f"<span class='ocrx_word' title='bbox {x0} {y0} {x1} {y1}'>{sign}</span>"
                    for sign, x0, y0, x1, y1 in spans)
    path = write(tmp_path, ("<!DOCTYPE html><html><head><meta name='ocr-system' content='tesseract 5.3.0'></head><body>"
                            "<div class='ocr_page' title='bbox 0 0 300 300; ppageno 0'><span class='ocr_line' "
                            f"title='bbox 0 0 1 1'>{body}</span></div></body></html>").encode())
    assert imported(path, tmp_path) == [[*letters, "flat"]]
    assert sorted(imported(path, tmp_path, "--join-letters", str(turn))[0]) == ["Ninety", "flat"]
    (document,) = read_documents(tmp_path / "out.jsonl")
    (word,) = [w for w in document.pages[0].words if w.text == "Ninety"]
    assert word.box == (30, 100, 38, 159) and word.extra["angle"] == turn


def imported(path, tmp_path, *options):
    out = tmp_path / "out.jsonl"
    assert command.main(["import", str(path), "--out", str(out), "--quiet", *options]) == 0
    return [page.texts for document in read_documents(out) for page in document.pages]


def test_io_22_words_outside_a_given_box_are_left_out_on_request(tmp_path, capsys):
    """Case io-22: words at y 100 and 700, a crop box of y 0 to 200."""
    content = ocr_files.text(20, 700, "top") + ocr_files.text(20, 100, "bottom")
    path = write(tmp_path, ocr_files.pdf((content, "/MediaBox [0 0 600 800]")))
    assert imported(path, tmp_path) == [["top", "bottom"]]
    assert imported(path, tmp_path, "--crop", "0,0,600,200") == [["top"]]
    for wrong in (("--crop", "1,2,3"), ("--join-letters", "45")):
        assert command.main(["import", str(path), "--out", "x", *wrong]) == 2
    assert command.main(["import", "sroie", str(path), "--to", "x", "--crop", "0,0,1,1"]) == 2
    assert "labels of a data set name its words" in capsys.readouterr().err
