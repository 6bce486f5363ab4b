"""dx import for files of pages: PDF, scans, OCR output. Streams: one page in memory, whatever the files' length."""
import dataclasses
import os
from pathlib import Path

from .below import crop_page, join_letters, json_line, page_to_json, replace_file
from .readers import ReaderError, read_file


def list_files(sources):
    """The files of the sources in their order: a folder stands for the files below it, sorted by path; ReaderError
    for a source that is not there."""
    found = []
    for source in map(Path, sources):
        if source.is_dir():
            below = sorted(p for p in source.rglob("*") if p.is_file() and not p.name.startswith("."))
            if not below:
                raise ReaderError(f"{source}: no file in this folder")
            found += below
        elif source.exists():
            found.append(source)
        else:
            raise ReaderError(f"{source}: no such file")
    return found


def document_names(files):
    """A document id for each file, all distinct: the name without suffix; for files that share it, the path from the
    folder they have in common, with / as separator, and where even that is shared with the suffix; list of str."""
    stems = [p.name.removesuffix(".gz") for p in files]
    stems = [os.path.splitext(name)[0] or name for name in stems]
    if len(set(stems)) == len(stems):
        return stems
    paths = [Path(os.path.abspath(p)) for p in files]
    common = Path(os.path.commonpath([p.parent for p in paths]))
    relative = [p.relative_to(common).as_posix() for p in paths]
    bare = [os.path.splitext(name.removesuffix(".gz"))[0] for name in relative]
    return [whole if bare.count(name) > 1 else name for name, whole in zip(bare, relative)]


def imported_pages(files, problems, failed, *, tell=None, crop=None, join=(), **options):
    """The pages of files, one after the other; a file that fails is named in problems and in `failed`, and the others
    go on. Options as readers.read_file."""
    for file, name in zip(files, document_names(files)):
        count, before = 0, len(problems)
        try:
            for page in read_file(file, problems, **options):
                count += 1
                page = dataclasses.replace(page, id=f"{name}/{page.number}", document=name)
                for angle in join:
                    page = join_letters(page, angle)
                yield page if crop is None else crop_page(page, crop)
        except (ReaderError, OSError) as error:
            text = str(error)
            problems.append(text if str(file) in text else f"{file}: {text}")
        if len(problems) > before and not count:
            failed.append(os.fspath(file))
        if tell is not None:
            tell(f"{file}: {count} pages")


def import_pages(sources, out, *, tell=None, **options):
    """Reads files of pages into one JSON-lines file, a page a line; pages of one document stand together.

    Parameters
    ----------
    sources : files and folders
    out : the file, replaced whole at the end, or a callable that takes each line (bytes)
    tell : callable that takes a message for each file read, or None
    options : crop, (x0, y0, x1, y1) in the pages' units: words whose middle lies outside are left out; join, angles of
        single letters that are joined to words (join_letters); format, ocr, languages, password, as readers.read_file

    Returns
    -------
    dict: files, pages, words, failed (files that gave no page), problems, notes (boxes repaired)

    Raises
    ------
    ReaderError: a source that is not there; OSError: the output cannot be written
    """
    files = list_files(sources)
    answer = {"files": len(files), "pages": 0, "words": 0, "failed": [], "problems": [], "notes": []}

    def write(put):
        for page in imported_pages(files, answer["problems"], answer["failed"], tell=tell, **options):
            answer["pages"] += 1
            answer["words"] += len(page.words)
            answer["notes"] += page.repairs
            put(json_line(page_to_json(page)))
    if callable(out):
        write(out)
    else:
        with replace_file(out) as file:
            write(file.write)
    return answer
