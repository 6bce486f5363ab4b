#!/usr/bin/env python3
"""Reconciles pinned sources of transformers and sentence-transformers with the presets that reproduce them.

    python tools/reconcile.py hf_modeling_bert_0104732.py … --digests SHA256SUMS [--out sources.json]
    python tools/reconcile.py --installed [--out sources.json]

A source is a Python file whose name holds the beginning of a pinned revision (7 hexadecimal digits or more) and whose
SHA-256 stands in the digests file (lines as sha256sum writes them); with --installed the files of the installed
packages, by the digests of their RECORD. No source is imported or run: its syntax tree is searched for markers, class
by class, so comments and docstrings prove nothing. Refused: another digest, a file that is not pinned, a page of HTML
or an error body in place of a source, a file that is not Python, a marker that is missing, a set of markers that no
source has.

The result (JSON, to stdout or --out) holds one entry a source, for a release's implementation/sources.json: name,
revision, sha256, markers, and for each symbol the preset and the contract that it is evidence of. Exit code 1, and
nothing written, when something is refused.
"""
import argparse
import ast
import base64
import hashlib
import importlib.metadata
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

REVISIONS = {"transformers": "0104732151118872214a2bcdc5badd32d938ab38",
             "sentence-transformers": "f6d3a4030d6878b3d916971de4686cef46626683"}
INSTALLED = {"transformers": ("5.24.0", ("transformers/models/bert/modeling_bert.py",)),
             "sentence-transformers": ("6.2.0", ("sentence_transformers/sentence_transformer/modules/pooling.py",
                                                 "sentence_transformers/base/modules/normalize.py",
                                                 "sentence_transformers/cross_encoder/model.py"))}
ERROR_BODY = re.compile(r"\s*(<|404\b|not found\b|\{\s*\"?(message|error)\"?\s*:|rate limit|access denied)", re.I)


class Refused(ValueError):
    """A source, or what was found in it, is no evidence; the message names it."""


@dataclass(frozen=True)
class Markers:
    """symbol : class · project · methods : whose code is searched, as far as the class has them · patterns : regular
    expressions over the code as ast.unparse writes it, which follow one another where `ordered` · preset, contract :
    what they are evidence of"""

    symbol: str
    project: str
    methods: tuple[str, ...]
    patterns: tuple[str, ...]
    preset: str
    contract: str
    ordered: bool = True

    def search(self, code: str) -> str | None:
        """The first pattern that is missing, or None."""
        at = 0
        for pattern in self.patterns:
            found = re.compile(pattern, re.S).search(code, at)
            if found is None:
                return pattern
            at = found.end() if self.ordered else 0
        return None


HF, ST, WRAPPER = "transformers", "sentence-transformers", ("__init__", "forward")
SETS = (
    Markers("BertPooler", HF, WRAPPER,
            (r"nn\.Tanh\(\)", r"hidden_states\[:, 0\]", r"self\.dense\(", r"self\.activation\("),
            "transformers.BertPooler", "first physical row -> dense -> tanh"),
    Markers("BertForSequenceClassification", HF, WRAPPER,
            (r"BertModel\(config\)", r"nn\.Dropout\(classifier_dropout\)",
             r"nn\.Linear\(config\.hidden_size, config\.num_labels\)", r"pooled_output = outputs\[1\]",
             r"self\.dropout\(pooled_output\)", r"self\.classifier\(pooled_output\)", r"problem_type is None",
             r"'regression'", r"'single_label_classification'", r"'multi_label_classification'"),
            "transformers.BertForSequenceClassification",
            "pooled output -> dropout -> classifier; objective by config or guessed"),
    Markers("BertForTokenClassification", HF, WRAPPER,
            (r"add_pooling_layer=False", r"sequence_output = outputs\[0\]", r"self\.dropout\(sequence_output\)",
             r"self\.classifier\(sequence_output\)", r"logits\.view\(-1, self\.num_labels\), labels\.view\(-1\)"),
            "transformers.BertForTokenClassification", "every row -> dropout -> classifier; flattened loss"),
    Markers("BertForQuestionAnswering", HF, WRAPPER,
            (r"add_pooling_layer=False", r"logits\.split\(1, dim=-1\)", r"ignored_index = start_logits\.size\(1\)",
             r"\.clamp\(0, ignored_index\)", r"ignore_index=ignored_index", r"\(start_loss \+ end_loss\) / 2"),
            "transformers.BertForQuestionAnswering", "start and end; sentinel at the number of rows"),
    Markers("Pooling", ST, ("__init__", "forward", "_forward_padded"),
            (r"float\('-inf'\)|-(?:torch|math|np)\.inf", r"\.max\(dim=1\)|torch\.max\(", r"\.sum\(dim=1|torch\.sum\(",
             r"clamp\(.*?min=1e-0?9\)", r"torch\.sqrt\(", r"torch\.arange\(", r"\.argmax\(dim=1\)",
             r"torch\.gather\(", r"\.flip\("),
            "sentence-transformers.Pooling", "-inf max; sum over count; first valid row; concatenated modes", False),
    Markers("Normalize", ST, WRAPPER, (r"'sentence_embedding'", r"F\.normalize\(.*p=2, dim=-?1\)"),
            "sentence-transformers.Normalize", "p = 2 along the embedding, behind the pooling"),
    Markers("CrossEncoder", ST, ("predict", "_inference"),
            (r"self\.eval\(\)", r"np\.argsort\(\[-", r"scores = activation_fn\(|activation_fn\(", r"apply_softmax",
             r"softmax\(.*dim=1\)", r"np\.argsort\(length_sorted_idx\)"),
            "sentence-transformers.CrossEncoder.predict", "eval; sort by length; activation; optional softmax; inverse "
            "permutation"),
)


def read_source(path, body: bytes, sha256: str) -> ast.Module:
    """The syntax tree of a source with that digest. Refused: any other body."""
    found = hashlib.sha256(body).hexdigest()
    if found != sha256:
        raise Refused(f"{path}: its SHA-256 is {found}: expected {sha256}")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 ({error.reason} at {error.start})") from None
    if ERROR_BODY.match(text) or not text.strip():
        raise Refused(f"{path}: begins with {text.strip()[:40]!r}: a page or an error, no source")
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Refused(f"{path}: not Python ({error})") from None


def code_of(node: ast.ClassDef, methods) -> str:
    """The code of a class's methods in the order given, without their docstrings. Of overloads the last one counts."""
    parts = []
    for name in methods:
        same = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name]
        for item in same[-1:]:
            body = item.body
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body = body[1:]
            parts += [ast.unparse(item.args), *(ast.unparse(statement) for statement in body)]
    return "\n".join(parts)


def reconcile(path, body: bytes, sha256: str, project: str, revision: str) -> dict:
    """The evidence of one source. Refused: what read_source refuses, a marker that is missing, no symbol at all."""
    tree = read_source(path, body, sha256)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    markers, contracts = {}, []
    for one in SETS:
        if one.project != project or one.symbol not in classes:
            continue
        missing = one.search(code_of(classes[one.symbol], one.methods))
        if missing is not None:
            raise Refused(f"{path}: {one.symbol}: the marker {missing} is missing: the contract {one.contract!r} does "
                          "not hold for this source")
        markers[f"{one.symbol}: {one.contract}"] = True
        contracts.append({"symbol": one.symbol, "preset": one.preset, "contract": one.contract})
    if not markers:
        raise Refused(f"{path}: none of {', '.join(s.symbol for s in SETS if s.project == project)} is defined there")
    return {"name": f"{project}: {Path(path).name}", "project": project, "revision": revision, "sha256": sha256,
            "state": "RECONCILED", "markers": markers, "contracts": contracts}


def complete(entries: list[dict]) -> list[dict]:
    """The entries, once all seven sets are among them. Refused otherwise."""
    seen = [contract["symbol"] for entry in entries for contract in entry["contracts"]]
    missing = [one.symbol for one in SETS if one.symbol not in seen]
    if missing:
        raise Refused(f"no source has {', '.join(missing)}: all {len(SETS)} sets of markers are needed")
    return entries


def read_digests(path) -> dict[str, str]:
    """file name → SHA-256 of a file as sha256sum writes it. Refused: a line of another form, a name twice."""
    found = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        entry = re.fullmatch(r"([0-9a-f]{64})[ *]{1,2}(\S.*)", line)
        if not entry:
            raise Refused(f"{path}: line {number} is {line[:60]!r}: expected a SHA-256 and a file name")
        name = Path(entry[2]).name
        if name in found:
            raise Refused(f"{path}: {name} stands there twice")
        found[name] = entry[1]
    return found


def pinned(path) -> tuple[str, str]:
    """(project, revision) that a source's name says. Refused: a name without a pinned revision."""
    digits = re.findall(r"(?<![0-9a-f])[0-9a-f]{7,40}(?![0-9a-f])", Path(path).stem)
    for project, revision in REVISIONS.items():
        if any(revision.startswith(part) for part in digits):
            return project, revision
    raise Refused(f"{path}: not pinned: its name holds the beginning of none of the revisions "
                  f"{', '.join(r[:7] for r in REVISIONS.values())}")


def from_files(paths, digests) -> list[dict]:
    """Evidence of sources on disk."""
    known, entries = read_digests(digests), []
    for path in paths:
        project, revision = pinned(path)
        if Path(path).name not in known:
            raise Refused(f"{path}: not pinned: {digests} has no digest of it")
        entries.append(reconcile(path, Path(path).read_bytes(), known[Path(path).name], project, revision))
    return complete(entries)


def from_installed() -> list[dict]:
    """Evidence of the installed releases, with the digests of their RECORD. Refused: another release than the recorded
    one, a package that is not installed."""
    entries = []
    for project, (release, names) in INSTALLED.items():
        try:
            distribution = importlib.metadata.distribution(project)
        except importlib.metadata.PackageNotFoundError:
            raise Refused(f"{project} is not installed: pip install {project}=={release}") from None
        if distribution.version != release:
            raise Refused(f"{project} {distribution.version} is installed: expected {release}, the recorded release")
        files = {str(file): file for file in distribution.files or ()}
        for name in names:
            if name not in files or files[name].hash is None or files[name].hash.mode != "sha256":
                raise Refused(f"{project} {release}: not pinned: its RECORD has no SHA-256 of {name}")
            value = files[name].hash.value
            sha256 = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
            body = Path(distribution.locate_file(files[name])).read_bytes()
            entries.append(reconcile(name, body, sha256, project, f"release {release}"))
    return complete(entries)


def main(arguments=None) -> int:
    """The command; exit codes 0, 1 (refused), 2 (usage)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="Python file named after a pinned revision")
    parser.add_argument("--digests", help="file of SHA-256 digests, as sha256sum writes it")
    parser.add_argument("--installed", action="store_true", help="the installed packages in place of files")
    parser.add_argument("--out", help="where the evidence goes; default: stdout")
    given = parser.parse_args(arguments)
    if given.installed == bool(given.sources) or bool(given.sources) != bool(given.digests):
        parser.error("expected SOURCE… with --digests, or --installed")
    try:
        entries = from_installed() if given.installed else from_files(given.sources, given.digests)
        text = json.dumps(entries, indent=1, sort_keys=True) + "\n"
        if given.out:
            Path(given.out).write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    except (Refused, OSError) as error:
        print(f"reconcile: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
