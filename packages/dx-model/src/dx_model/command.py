"""`python -m dx_model extract | inspect | embed | export`, for those who install this package alone.

Data goes to stdout (UTF-8, \\n), messages to stderr. Exit codes: 0 done; 1 something asked for failed, as in a run of
which some pages could not be read; 2 usage; 130 interrupted."""
import argparse
import json
import os
import sys

import numpy as np

from .below import NUMERICS_VERSION, degree, get_degree, matmul
from .container import ModelFileError, file_digest
from .docextract import DocExtract, extract_document, extract_page, tensor_table
from .model_files import model_path
from .page_files import read_documents

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_chars", "char_dim",
         "char_channels", "position_buckets", "pair_hidden", "relation_size", "max_words")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m dx_model", description="Reads fields from pages with a model file.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    e = commands.add_parser("extract", help="the fields of every page or document of JSON-lines files")
    e.add_argument("model", help="a model file, or the folder that holds model.safetensors")
    e.add_argument("pages", nargs="+", help="JSON lines (.gz too): a page or a document a line")
    e.add_argument("--json", action="store_true", help="one JSON object a line instead of columns")
    e.add_argument("--repair", action="store_true", help="repair boxes instead of refusing their page")
    e.add_argument("--votes", action="store_true", help="runs with the same text add up")
    e.add_argument("--relations", action="store_true", help="also entities, key-value pairs and line items (--json)")
    e.add_argument("--alternatives", type=int, default=3, metavar="N", help="runs listed beside the chosen one (3)")
    e.add_argument("--threads", type=int, default=None, metavar="N", help="threads; the result does not depend on them")
    i = commands.add_parser("inspect", help="what a model file is and whether it is sound")
    i.add_argument("model", help="a model file, or the folder that holds model.safetensors")
    i.add_argument("--json", action="store_true", help="one JSON object")
    m = commands.add_parser("embed", help="a vector for every line of text files, or the nearest lines to a text")
    m.add_argument("model", help="a folder of sentence-transformers: config.json, model.safetensors, tokenizer.json, …")
    m.add_argument("texts", nargs="+", help="UTF-8 text files, one text a line")
    m.add_argument("--out", metavar="FILE", help="write the vectors here: .npy (texts, width), float32")
    m.add_argument("--search", metavar="TEXT", help="print the lines nearest to this text, with their similarity")
    m.add_argument("--top", type=int, default=5, metavar="N", help="how many of them (5)")
    m.add_argument("--truncate", action="store_true", help="cut texts that are too long instead of refusing them")
    m.add_argument("--cache", metavar="FOLDER", help="keep vectors here, and take those that are there")
    m.add_argument("--threads", type=int, default=None, metavar="N", help="threads; the result does not depend on them")
    x = commands.add_parser("export", help="a model as ONNX, its record inside (extra onnx)")
    x.add_argument("model", help="a docextract model file, or a folder of sentence-transformers (with tokenizer.json)")
    x.add_argument("out", help="the file to write")
    return p


def emit(text: str) -> None:
    """One line on stdout in UTF-8, whatever the locale; a lone surrogate becomes an escape."""
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    if sys.stdout is None:
        raise OSError("stdout is closed")
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data.decode("utf-8"))


def say(text: str) -> None:
    if sys.stderr is not None:  # closed: print would take stdout
        print(text, file=sys.stderr, flush=True)


def to_line(value: dict) -> str:
    """JSON in one line; plain ASCII where a text holds a lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, allow_nan=False)
    return text


def columns(id: str, fields: dict):
    """Lines of id, field, confidence, text, parted by tabs."""
    for name, field in fields.items():
        found = [(v.confidence, v.text) for v in field.values] or [(field.absent, None)]
        for confidence, text in found:
            shown = "-" if text is None else " ".join(text.split())
            yield f"{id}\t{name}\t{confidence:.4f}\t{shown}"


def extract(a) -> int:
    model = DocExtract.from_pretrained(a.model)
    options = {"votes": a.votes, "relations": a.relations, "alternatives": a.alternatives}
    done, problems = 0, []
    for path in a.pages:
        found: list = []
        documents, more = read_documents(path, repair=a.repair, problems=found), True
        while more:
            try:
                document = next(documents, None)
            except (OSError, ValueError) as error:  # the file itself; the others are still read
                document = None
                found.append(str(error) if str(path) in str(error) else f"{path}: {error}")
            more = document is not None
            for problem in found:
                problems.append(problem)
                say(problem)
                if a.json:
                    emit(to_line({"error": problem}))
            found.clear()
            if not more:
                continue
            for repair in [text for page in document.pages for text in page.repairs]:
                say(f"{path}: repaired: {repair}")
            single = len(document.pages) == 1 and document.pages[0].document is None
            result = (extract_page(model, document.pages[0], **options) if single else
                      extract_document(model, document, **options))
            done += 1
            if a.json:
                emit(to_line(result.to_json()))
            else:
                for line in columns(result.id, result.fields):
                    emit(line)
    if problems:
        say(f"{done} read, {len(problems)} failed")
    return 1 if problems else 0


def inspect(a) -> int:
    path = model_path(a.model)
    model = DocExtract.from_pretrained(path)
    config, table = model.config, tensor_table(model.config)
    answer = {"file": str(path), "sha256": file_digest(path), "bytes": os.path.getsize(path), "kind": "docextract",
              "parameters": model.parameters.flat.size, "tensors": len(table), "numerics_version": NUMERICS_VERSION,
              "config": config.to_json()}
    if a.json:
        emit(to_line(answer))
        return 0
    emit(f"{path}: docextract, {answer['parameters']:,} parameters in {len(table)} tensors, {answer['bytes']:,} bytes")
    emit(f"sha256      {answer['sha256']}")
    for name in ("fields", "roles", "doc_types"):
        names = [f"{n} (repeated)" if name == "fields" and n in config.repeated else n for n in getattr(config, name)]
        emit(f"{name:<11} {', '.join(names) or '-'}")
    emit(f"sizes       {', '.join(f'{name} {getattr(config, name)}' for name in SIZES)}")
    return 0


def embed(a) -> int:
    """Vectors to a file, or the nearest lines, best first; ties in the order of the files."""
    from .bert.embedder import Embedder
    from .files import replace_file

    texts, places = [], []
    for path in a.texts:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError as error:
                    raise ValueError(f"{path}:{number}: not UTF-8: {error.reason} at byte {error.start}") from None
                if text:
                    texts.append(text)
                    places.append(f"{path}:{number}")
    embedder, truncation = Embedder.from_pretrained(a.model), "end" if a.truncate else "refuse"
    if a.cache:
        embedder = kept_in(a.cache, a.model, embedder)
    vectors = embedder.embed(texts, truncation=truncation)
    if a.out:
        with replace_file(a.out) as file:
            np.save(file, vectors)
    if a.search is not None:
        query = embedder.embed([a.search], truncation=truncation)
        scores = np.empty((1, len(texts)), np.float32)
        matmul(query, vectors, scores, transpose_b=True)
        order = np.argsort(-scores[0], kind="stable")
        for place in order[:a.top].tolist():
            emit(f"{scores[0, place]:.6f}\t{places[place]}\t{texts[place]}")
    say(f"{len(texts)} texts, {vectors.shape[1]} numbers each")
    return 0


def kept_in(folder, model, embedder):
    """The embedder with its vectors kept in a store; damaged files of the store are named on stderr."""
    from .export.embedder import embedder_manifest
    from .runtime import CachedEmbedder, StateStore, layered_release

    store = StateStore(folder, lambda c: say(f"{folder}/{c.path}: {c.reason}: computed again"))
    return CachedEmbedder(embedder, store, layered_release(embedder_manifest(model, embedder)))


def export(a) -> int:
    from .export import export_docextract, export_embedder

    embeds = os.path.exists(os.path.join(a.model, "tokenizer.json"))
    made = export_embedder(a.model) if embeds else export_docextract(DocExtract.from_pretrained(a.model))
    emit(f"{made.save(a.out)}  {a.out}")
    for kind, tensors in (("in", made.abi.inputs), ("out", made.abi.outputs)):
        for t in tensors:
            axes = ", ".join(f"{axis} {made.abi.sizes[axis]}" if axis in made.abi.sizes else axis for axis in t.axes)
            emit(f"{kind:<4}{t.name:<16}{t.dtype:<8}[{axes}]")
    return 0


def main(arguments=None) -> int:
    """Runs the command on these arguments (default: the process's); returns the exit code."""
    try:
        a = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has printed help (0) or the usage error (2)
        return stop.code
    if a.command == "extract" and (a.alternatives < 0 or (a.threads is not None and a.threads < 1)):
        say("python -m dx_model: --alternatives takes 0 or more, --threads 1 or more")
        return 2
    if a.command == "embed" and (not a.out and a.search is None or a.top < 1 or (a.threads or 1) < 1):
        say("python -m dx_model: embed takes --out or --search; --top and --threads 1 or more")
        return 2
    try:
        with degree(get_degree() if getattr(a, "threads", None) is None else a.threads):
            return {"extract": extract, "inspect": inspect, "embed": embed, "export": export}[a.command](a)
    except (ModelFileError, OSError, ModuleNotFoundError, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        say(f"python -m dx_model: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
