"""Local-first extraction: what the model is sure of comes from the model, the rest is asked of the labelling model."""
from dataclasses import dataclass, field

from .below import DocExtract, extract_document, word_labels
from .schema import Schema
from .values import normal_form


@dataclass(frozen=True)
class LocalFirst:
    """A model, the confidence from which each field's value is accepted (None: never), and who is asked for the rest.

    ask : callable taking (Document, names of fields) and giving a dict name → value or None; None: nobody is asked
    schema : the fields' types, for normalised values; None: there are none
    readers : names of the readers of the pages the model was trained on; (): unknown
    """
    model: DocExtract
    thresholds: dict = field(default_factory=dict)
    ask: object = None
    schema: Schema | None = None
    readers: tuple = ()


def asking(labeller, schema):
    """`ask` for LocalFirst: a Labeller asked for some of a schema's fields."""
    def ask(document, names):
        return labeller.label(document, Schema(tuple(schema.field(name) for name in names), schema.name))
    return ask


def extract(local, document, *, words=False):
    """The fields of a document, each with where it comes from.

    Returns
    -------
    dict: id, fields: name → {value, source, confidence, threshold, …}. source is "model" (the confidence reaches the
    threshold, or "no value" does), "labeller" (asked), or "unsure" (below the threshold and nobody to ask: the model's
    value all the same). A field of the model carries its words and, in documents of several pages, their page; one of
    type date, amount or number also `normalised` (None where the text can be read in several ways or in none). An error
    of the labelling model leaves the fields unsure and is told under "error". With words also words: for each page the
    model's label of every word (word_labels).
    """
    result = extract_document(local.model, document)
    fields, open_fields = {}, []
    for name, found in result.fields.items():
        fields[name] = _from_model(found, local.thresholds.get(name))
        if local.schema is not None and local.schema.field(name).type in ("date", "amount", "number"):
            value = fields[name]["value"]
            some = [normal_form(local.schema.field(name), v)[0] for v in (value if found.repeated else [value]) if v]
            fields[name]["normalised"] = some if found.repeated else some[0] if some else None
        if fields[name]["source"] == "unsure":
            open_fields.append(name)
    answer = {"id": document.id, "fields": fields}
    if words:
        answer["words"] = [word_labels(page, result.fields, number) for number, page in enumerate(document.pages)]
    if open_fields and local.ask is not None:
        try:
            given = local.ask(document, open_fields)
        except (OSError, ValueError, RuntimeError) as error:
            return {**answer, "error": f"document {document.id!r}: the labelling model: {error}"}
        for name in open_fields:
            fields[name] = {"value": given.get(name), "source": "labeller", "confidence": None,
                            "threshold": fields[name]["threshold"], "model": fields[name]}
    return answer


def _from_model(found, threshold):
    one = found.to_json()
    one.pop("alternatives")
    if found.repeated:
        confidence = min((v.confidence for v in found.values), default=found.absent)
        sure = threshold is not None and confidence >= threshold
        return {"value": [v.text for v in found.values], "source": "model" if sure else "unsure",
                "confidence": confidence, "threshold": threshold, "absent": found.absent, "values": one["values"]}
    confidence = one.pop("confidence")
    sure = threshold is not None and confidence >= threshold
    return {"value": one.pop("value"), "source": "model" if sure else "unsure", "confidence": confidence,
            "threshold": threshold, **one}
