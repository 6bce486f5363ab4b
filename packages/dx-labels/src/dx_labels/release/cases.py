"""Per-case outputs of a docextract model: every field of every page, as places of words; texts only when asked for."""
from ..below import encode_page, extract_page, page_windows
from ..evaluation import page_rows
from ..evidence.plan import EvaluationPlan, SlicePlan
from ..examples import labels_by_page


def project_cases(model, documents, labels, fields, thresholds, *, with_text: bool = False) -> list[dict]:
    """Cases (evidence.kinds, "fields") of documents, in order.

    thresholds : field → float or None · with_text : also gold and predicted texts; without it a case holds numbers
    of words, confidences and counts only
    """
    own, found = labels_by_page(labels), []
    for document in documents:
        for page in document.pages:
            result = extract_page(model, page)
            rows = len(encode_page(page, model.config.encoding()))
            windows = len(page_windows(rows, model.config.max_words)) if rows else 0
            for row in page_rows(result, own.get(page.id, []), fields):
                found.append(_case(document, page, row, windows, thresholds[row.field], with_text))
    return found


def _case(document, page, row, windows, threshold, with_text):
    gold = [[[list(part) for part in place] for place in value] for value in row.gold_places]
    spans = [len(place) for value in row.gold_places for place in value]
    case = {"case": f"{page.id}#{row.field}", "example": page.id, "page": page.id, "field": row.field, "gold": gold,
            "predicted": [[list(part) for part in place] for place in row.predicted_places],
            "confidences": list(row.confidences), "scored": row.words, "threshold": threshold,
            "features": {"field": row.field, "words": len(page.words), "windows": windows, "values": len(gold),
                         "span_words": max(spans, default=0), "pages": len(document.pages)}}
    if with_text:
        case["texts"] = {"gold": list(row.gold), "predicted": list(row.predicted)}
    return case


def default_plan(fields) -> EvaluationPlan:
    """The plan of a project that states none: slices by field, length, windows and span length, all told and none
    critical. It has nothing that could fail, so a release under it is not EVALUATED."""
    slices = [SlicePlan(f"field {name}", "a field of its own can fail while the average holds", "field", equals=name)
              for name in fields]
    slices += [SlicePlan("short pages", "little context", "words", high=50.0),
               SlicePlan("long pages", "many candidates for each value", "words", low=200.0),
               SlicePlan("pages of several windows", "a value near a cut, or in two windows", "windows", low=2.0),
               SlicePlan("one-word values", "no border inside a value to learn from", "span_words", low=1.0, high=2.0),
               SlicePlan("values of several words", "borders", "span_words", low=2.0),
               SlicePlan("no value", "a value is invented", "values", equals=0)]
    return EvaluationPlan("fields", {"costs": {"accepted_wrong": 10.0, "not_accepted": 1.0}, "bins": 10}, {},
                          tuple(slices))
