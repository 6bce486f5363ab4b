"""What the review page shows and changes: documents, labels, predictions, corrections. Knows nothing of HTTP."""
import threading

from ..below import extract_document
from ..corrections import History, ReviewError, overlaid
from ..job import own_values
from ..labels import label_document
from ..settings import settings_from_json


class Session:
    """A project opened for review; methods may be called from several threads.

    Parameters
    ----------
    project : Project
    predict : bool; predictions of the project's model are shown where there is one
    """

    def __init__(self, project, *, predict=True):
        self.project, self.schema = project, project.schema()
        self.problems = []
        self.documents = project.documents(self.problems)
        self.given = project.values(self.problems)
        self.missing = settings_from_json(project.read_json("settings.json")).missing
        self.history = History(project.folder)
        self.model = None
        if predict and project.path("model/model.safetensors").exists():
            self.model = project.local_first().model
        self._numbers = {d.id: n for n, d in enumerate(self.documents)}
        self._lock, self._labels, self._predictions = threading.RLock(), {}, {}
        self._stop = threading.Event()

    # --- what is shown -----------------------------------------------------------------------------------------------

    def overview(self):
        """The project as the page's head shows it; dict."""
        return {"name": self.project.folder.resolve().name, "documents": len(self.documents),
                "fields": [{"name": f.name, "type": f.type, "repeated": f.repeated} for f in self.schema.fields],
                "model": self.model is not None, "problems": self.problems[:20]}

    def listing(self):
        """A line for each document; list of dict: id, pages, reviewed (fields corrected), open (fields whose value was
        not found on the page), confidence (the lowest of its predictions) and disagree (fields whose label and
        prediction differ), the last two None until the document was predicted."""
        with self._lock:
            self.history.refresh()
            return [self._line(number) for number in range(len(self.documents))]

    def _line(self, number):
        document = self.documents[number]
        labels, problem = self._labels_of(number)
        found = self._predictions.get(number)
        line = {"id": document.id, "pages": len(document.pages),
                "reviewed": sorted(self.history.of_document(document.id)), "problem": problem,
                "open": sorted({x.field for x in labels if x.outcome in ("absent", "scattered") or x.contested}),
                "confidence": None, "disagree": None}
        if found is not None:
            sure = [f["confidence"] for f in found.values() if f["confidence"] is not None]
            line["confidence"] = min(sure, default=None)
            line["disagree"] = self._disagreement(labels, found)
        return line

    def _disagreement(self, labels, found):
        out = []
        for field in self.schema.names if labels else ():
            places = [frozenset((self._page_number(x), w) for w, *_ in run) for x in labels if x.field == field
                      for run in x.runs if x.state == "value"]
            predicted = [frozenset((p["page"], w) for w in p["words"]) for p in found[field]["places"]]
            if any(p not in places for p in predicted) or bool(places) != bool(predicted):
                out.append(field)
        return out

    def document(self, number):
        """One document with all the page needs; dict."""
        with self._lock:
            self.history.refresh()
            document = self._document(number)
            labels, problem = self._labels_of(number)
            fields, given = {}, self._values(document) or {}
            for field in self.schema.names:
                own = [x for x in labels if x.field == field]
                fields[field] = {"revision": self.history.revision(document.id, field), "given": given.get(field),
                                 "values": [self._label(x) for x in own if x.value is not None or x.runs]}
            predictions = self._predict(number)
            pages = [{"id": p.id, "width": p.width, "height": p.height, "rotation": p.rotation,
                      "image": isinstance(p.extra.get("image"), str),
                      "words": [[w.text, *w.box] for w in p.words]} for p in document.pages]
            return {"number": number, "id": document.id, "pages": pages, "fields": fields, "problem": problem,
                    "predictions": predictions, "line": self._line(number)}

    def _label(self, label):
        return {"value": label.value, "outcome": label.outcome, "how": list(label.how), "contested": label.contested,
                "page": self._page_number(label), "runs": [[w for w, *_ in run] for run in label.runs]}

    def _page_number(self, label):
        document = self.documents[self._numbers[label.document]]
        return next(n for n, page in enumerate(document.pages) if page.id == label.page)

    def image(self, number, page):
        """The file of a page's picture (the page's `image`, a path in the project's folder); Path.
        ReviewError where there is none or it lies elsewhere."""
        document = self._document(number)
        if not 0 <= page < len(document.pages):
            raise ReviewError(f"document {document.id!r} has no page {page}")
        name = document.pages[page].extra.get("image")
        folder = self.project.folder.resolve()
        path = (folder / name).resolve() if isinstance(name, str) else None
        if path is None or not path.is_file() or folder not in path.parents:
            raise ReviewError(f"document {document.id!r}, page {page}: no picture in the project's folder")
        return path

    def record(self, number):
        """The corrections of a document, oldest first; list of dict."""
        with self._lock:
            name = self._document(number).id
            return [line for line in self.history.lines if line["document"] == name]

    # --- what is changed ---------------------------------------------------------------------------------------------

    def correct(self, number, field, revision, value):
        """Sets a field of a document, durably, and brings labels.jsonl up to date where there is one.

        Parameters
        ----------
        number : the document's place; field : a name of the schema
        revision : the field's revision as the caller saw it
        value : as label_document takes it: None, {"value", "words", "page"}, or a list of these for a repeated field

        Returns
        -------
        dict: the document, as `document` gives it

        Raises
        ------
        ReviewConflict: it was corrected meanwhile; ReviewError, LabelError: a value that breaks a rule
        """
        with self._lock:
            document = self._document(number)
            if field not in self.schema.names:
                raise ReviewError(f"unknown field {field!r}: expected one of {', '.join(self.schema.names)}")
            if type(revision) is not int:
                raise ReviewError(f"revision is {revision!r}: expected a whole number")
            self.history.refresh()
            values = self._values(document)
            label_document(document, self.schema, {**(values or {}), field: value}, similar=True,
                           missing=self.missing)  # LabelError
            self.history.add(document.id, field, revision, value, (values or {}).get(field))
            self._labels.pop(number, None)
            self._write_labels(document.id)
            return self.document(number)

    def _values(self, document):
        return overlaid(own_values(document, self.schema, self.given), self.history.of_document(document.id))

    def _write_labels(self, name):
        if not self.project.path("labels.jsonl").exists():
            return
        kept, new = self.project.labels(self.schema), self._labels_of(self._numbers[name])[0]
        out, placed = [], False
        for label in kept:
            if label.document != name:
                out.append(label)
            elif not placed:
                out, placed = out + new, True
        self.project.write_labels(out if placed else out + new, self.schema, "dx serve-review", [self.history.path])

    # --- inside ------------------------------------------------------------------------------------------------------

    def _document(self, number):
        if not 0 <= number < len(self.documents):
            raise ReviewError(f"there is no document {number}: expected 0 to {len(self.documents) - 1}")
        return self.documents[number]

    def _labels_of(self, number):
        """(labels, what is wrong with the document's values or None), kept until a correction."""
        document = self.documents[number]
        stamp = tuple(self.history.revision(document.id, f) for f in self.schema.names)
        found = self._labels.get(number)
        if found is None or found[0] != stamp:
            values = self._values(document)
            try:
                labels, problem = [], None
                if values is not None:
                    labels = label_document(document, self.schema, values, similar=True, missing=self.missing)
            except ValueError as error:
                labels, problem = [], str(error)
            found = self._labels[number] = (stamp, labels, problem)
        return found[1], found[2]

    def _predict(self, number):
        """dict field → value, confidence, places [{page, words, confidence}]; None without a model."""
        if self.model is None:
            return None
        if number not in self._predictions:
            result = extract_document(self.model, self.documents[number], alternatives=0)
            found = {}
            for name, one in result.fields.items():
                sure = [v.confidence for v in one.values] or [one.confidence]
                found[name] = {"value": [v.text for v in one.values] if one.repeated else one.value,
                               "confidence": min((c for c in sure if c is not None), default=None),
                               "places": [{"page": v.page or 0, "words": [part.word for part in v.parts],
                                           "value": v.text, "confidence": v.confidence} for v in one.values]}
            self._predictions[number] = found
        return self._predictions[number]

    def predict_all(self):
        """Predicts every document, one by one, until all are done or stop() is called; for a thread of its own."""
        for number in range(len(self.documents) if self.model is not None else 0):
            if self._stop.is_set():
                return
            with self._lock:
                self._predict(number)

    def stop(self):
        self._stop.set()
