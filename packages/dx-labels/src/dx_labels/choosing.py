"""Which documents are most worth labelling next, and whether more of them would help."""
import dataclasses

from .below import DocExtract, FineTune, extract_document
from .corrections import History, overlaid
from .evaluation import evaluate, place_of, scored_documents
from .examples import training_examples
from .intervals import clopper_pearson
from .job import JobError, own_values, parts_of
from .labels import label_document
from .splits import order_key
from .texts import is_digit, key

NOVELTY = 0.5  # the weight of novelty beside uncertainty and disagreement


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A document that might be labelled, or looked at again, next.

    document : id
    labelled : whether it has values
    uncertainty : mean over the fields of 1 - confidence, 0 to 1; None without a model
    disagreement : share of the fields whose values the model reads at other places than the labels have them; None
        without a model or labels
    novelty : share of its distinct words that neither a labelled document nor one ranked before it has, 0 to 1
    fields : names, the least sure first; () without a model
    """
    document: str
    labelled: bool
    uncertainty: float | None
    disagreement: float | None
    novelty: float
    fields: tuple = ()

    @property
    def score(self):
        """uncertainty + disagreement + novelty / 2; float."""
        return (self.uncertainty or 0.0) + (self.disagreement or 0.0) + NOVELTY * self.novelty


def next_documents(project, count=20, *, documents=None, tell=None):
    """The documents most worth labelling, the best first.

    Candidates are the documents without values and, where there is a model, those whose values it disputes and nobody
    has corrected. Each is chosen after those before it: its novelty counts only words that they do not have, so that
    twenty copies of one form are not the first twenty. Ties go to the id that comes first in UTF-8.

    Parameters
    ----------
    project : Project
    count : int
    documents : list of Document to choose from beside the project's own, or None
    tell : takes messages of what could not be read, or None

    Returns
    -------
    list of Candidate, at most count
    """
    schema, problems = project.schema(), []
    given, corrections = project.values(problems), History(project.folder)
    own = project.documents(problems)
    known = {d.id for d in own}
    own += [d for d in documents or () if d.id not in known]
    model = project.local_first().model if project.path("model/model.safetensors").exists() else None
    missing = project.settings().missing
    labelled_words, open_ones = set(), []
    for document in own:
        values = overlaid(own_values(document, schema, given), corrections.of_document(document.id))
        words = words_of(document)
        if values is not None:
            labelled_words |= words
        if values is None or (model is not None and not corrections.of_document(document.id)):
            candidate = judge(document, schema, values, model, problems, missing)
            if candidate is not None:
                open_ones.append((candidate, words))
    for problem in problems if tell is not None else ():
        tell(problem)
    return ranked(open_ones, labelled_words, count)


def judge(document, schema, values, model, problems, missing="none"):
    """The Candidate of a document, its novelty still 0; None for a labelled one that the model does not dispute."""
    uncertainty, disagreement, fields = None, None, ()
    if model is not None:
        result = extract_document(model, document, alternatives=0)
        doubts = [(1.0 - sureness(result.fields[name]), name) for name in schema.names]
        total = 0.0
        for doubt, _ in doubts:
            total += doubt
        uncertainty = total / len(doubts)
        fields = tuple(name for _, name in sorted(doubts, key=lambda d: (-d[0], schema.names.index(d[1]))))
        if values is not None:
            try:
                disagreement = disputed(document, schema, values, result, missing) / len(schema.names)
            except ValueError as error:
                problems.append(str(error))
                disagreement = 1.0
            if not disagreement:
                return None
    return Candidate(document.id, values is not None, uncertainty, disagreement, 0.0, fields)


def sureness(found):
    """The least confidence of a field's values; of "no value" where there is none; float."""
    least = 1.0
    for value in found.values:
        least = min(least, value.confidence)
    if found.values:
        return least
    return found.confidence if found.confidence is not None else 1.0


def disputed(document, schema, values, result, missing="none"):
    """How many fields the model reads at a place that no label has, or does not read though a label stands there."""
    labels = label_document(document, schema, values, similar=True, missing=missing)
    unknown = {x.field for x in labels if x.state == "unknown"}
    pages, count = [p.id for p in document.pages], 0
    for name in schema.names:
        own = [x for x in labels if x.field == name and x.state == "value"]
        places = {(pages.index(x.page), run) for x in own for run in x.runs}
        read = {(v.page or 0, place_of(v)) for v in result.fields[name].values}
        count += name not in unknown and (bool(read - places) or bool(places) != bool(read))
    return count


def words_of(document):
    """The distinct words of a document as letters and digits; set of str. Numbers count as one word: every page has
    new ones."""
    words = {key(w.text) for page in document.pages for w in page.words}
    return {word for word in words if word and not any(is_digit(c) for c in word)}  # exact: a set made of a set


def ranked(candidates, known, count):
    """The best `count` of (Candidate, words), each with the novelty it has after those before it; list of Candidate."""
    known, left, out = set(known), list(candidates), []
    while left and len(out) < count:
        best = None
        for place, (candidate, words) in enumerate(left):
            new = len(words - known) / len(words) if words else 0.0
            one = dataclasses.replace(candidate, novelty=new)
            rank = (-one.score, one.document.encode("utf-8", "surrogatepass"))
            if best is None or rank < best[0]:
                best = rank, place, one
        _, place, one = best
        known |= left.pop(place)[1]
        out.append(one)
    return out


def learning_curve(project, points=3, *, tell=print, progress=None):
    """Would more pages help: trains on growing shares of half the training documents and scores each on the other half.
    The held-out documents are not touched.

    Parameters
    ----------
    project : Project with labels
    points : int from 2; the shares are 1/2^(points-1), …, 1/2, 1 of that half
    tell, progress : as FineTune.run

    Returns
    -------
    dict: rows (documents, correct {k, n, interval}, f1 by words), verdict (text), gained and lost: fields of documents
    that only the larger, and only the smaller of the last two models reads right

    Raises
    ------
    JobError: fewer than 4 · 2^points training documents
    """
    settings = project.settings()
    schema, labels = project.schema(), project.labels(project.schema())
    documents = {d.id: d for d in project.documents([])}
    training, development, _ = parts_of(list(documents.values()), labels, settings)
    scored = set(scored_documents(labels))
    order = sorted(training, key=lambda name: order_key(settings.seed + 2, name))
    test = [name for name in order[len(order) // 2:] if name in scored]
    pool = order[:len(order) // 2]
    if not 2 <= points <= 20:
        raise JobError(f"{points} points: expected 2 to 20")
    if len(training) < 4 * 2 ** points:  # exact: whole numbers
        raise JobError(f"{len(training)} training documents, {points} points: expected at least "
                       f"{4 * 2 ** points} documents")  # exact: whole numbers
    config, rows, right = settings.config(schema), [], []
    for point in range(points):
        chosen = [documents[name] for name in pool[:len(pool) >> (points - 1 - point)]]
        examples = training_examples(chosen, labels, schema, config, variants=settings.variants,
                                     places=settings.places, seed=settings.seed)
        tell(f"{len(chosen)} documents")
        model = DocExtract.initial(config, settings.seed)
        result = FineTune(settings.training(len(examples))).run(model, examples, progress=progress,
                                                                tell=lambda text: None)
        judged = evaluate(DocExtract(result.parameters), [documents[name] for name in test], labels, schema.names)
        judged = [row for row in judged if row.words]
        hits, predicted, gold = 0, 0, 0
        for row in judged:
            hits += row.right_words()
            predicted += len(row.predicted_places)
            gold += len(row.gold_places)
        right.append([row.exactly() for row in judged])
        k = right[-1].count(True)
        low, high = clopper_pearson(k, len(judged))
        rows.append({"documents": len(chosen), "f1_words": 2 * hits / (predicted + gold) if predicted + gold else None,
                     "correct": {"k": k, "n": len(judged), "interval": [low, high]}})
    gained = [b and not a for a, b in zip(right[-2], right[-1])].count(True)
    lost = [a and not b for a, b in zip(right[-2], right[-1])].count(True)
    return {"rows": rows, "gained": gained, "lost": lost, "tested_on": len(test),
            "verdict": verdict(rows, gained, lost)}


def verdict(rows, gained, lost):
    """What the last doubling of documents says: an exact interval of the share of gains among the fields that the last
    two models judge differently; text."""
    a, b = rows[-2]["documents"], rows[-1]["documents"]
    low, high = clopper_pearson(gained, gained + lost)
    counts = f"from {a} to {b} documents {gained} fields were won and {lost} lost"
    if low > 0.5:
        return f"{counts}: more documents are likely to help"
    if high < 0.5:
        return f"{counts}: it got worse; look at the labels before adding documents"
    return f"{counts}: no clear gain; more documents of the same kind may help little"
