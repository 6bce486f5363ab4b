"""A score for the development part: F1 of fields, decoded jointly, against the places in the examples' targets."""
import numpy as np

from .below import DocExtract, decode_tags, runs_of_tags


class FieldF1:
    """Callable that scores a model on examples: 2 TP / (predicted + gold) over runs of words.

    A term of the run targets is one gold value, found where a decoded run of its field is one of its places; a term
    without places has no value; fields without a term are not counted. 1 where nothing is predicted and nothing gold.
    """

    def __init__(self, examples):
        self.examples = list(examples)

    def __call__(self, model: DocExtract) -> float:
        right = predicted = gold = 0
        for example in self.examples:
            logits = np.ascontiguousarray(model.forward(example.page, ("tag",)).tag)
            tags = np.empty(len(logits), np.int32)
            decode_tags(logits, model.config.repeated_mask(), tags)
            fields = example.targets.run_fields.tolist()
            runs = [run for run in runs_of_tags(tags).tolist() if run[0] in fields]
            places = [[] for _ in fields]
            for term, first, last in example.targets.run_places.tolist():
                places[term].append([fields[term], first, last])
            predicted, gold = predicted + len(runs), gold + sum(bool(p) for p in places)  # exact: whole numbers
            right += sum(any(place in runs for place in p) for p in places)  # exact: whole numbers
        return 2.0 * right / (predicted + gold) if predicted + gold else 1.0
