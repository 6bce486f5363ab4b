"""What is reproduced, of which revision, and where this library refuses what the original lets pass."""
from dataclasses import dataclass

from ..errors import require

REVISIONS = {"transformers": "0104732151118872214a2bcdc5badd32d938ab38",
             "sentence-transformers": "f6d3a4030d6878b3d916971de4686cef46626683"}  # captured on 2026-08-05


@dataclass(frozen=True)
class Preset:
    """name : "project.Symbol" · function : what reproduces it here, of dx_model.readout.presets · does : the tensor
    contract · stricter : what is refused here and passes there"""

    name: str
    function: str
    does: str
    stricter: str

    @property
    def project(self) -> str:
        """A key of REVISIONS."""
        return self.name.partition(".")[0]

    @property
    def symbol(self) -> str:
        """The class, or class and mode or method."""
        return self.name.partition(".")[2]

    @property
    def revision(self) -> str:
        """The commit whose behaviour is meant."""
        return REVISIONS[self.project]


PRESETS = (
    Preset("transformers.BertPooler", "bert_pooler", "p = tanh(W H[:, 0] + b), physical row 0",
           "an example whose row 0 is padding: the mask is not searched, so another row would be meant"),
    Preset("transformers.BertForSequenceClassification", "bert_sequence_classification",
           "pooler, dropout, linear map; mean squared error, cross-entropy or binary cross-entropy",
           "a problem type that is not declared: neither number of labels nor dtype of a batch chooses the loss"),
    Preset("transformers.BertForTokenClassification", "bert_token_classification",
           "dropout and one linear map on every row; cross-entropy over targets that are not -100",
           "a target on a row of padding, which an attention mask does not take out of the loss there"),
    Preset("transformers.BertForQuestionAnswering", "bert_question_answering",
           "one linear map to start and end of every row; half the sum of both cross-entropies over rows",
           "positions outside of the rows, which are clamped and ignored there, and a start after its end; which rows "
           "compete is said by the caller"),
    Preset("sentence-transformers.Pooling.cls", "sentence_pooling", "first row that the mask admits",
           "no admitted row, whose vector is that of row 0 there"),
    Preset("sentence-transformers.Pooling.max", "sentence_pooling", "largest admitted value of every channel",
           "no admitted row, whose vector is -inf there"),
    Preset("sentence-transformers.Pooling.mean", "sentence_pooling", "sum over number of admitted rows",
           "no admitted row, whose number is clamped to 1e-9 there"),
    Preset("sentence-transformers.Pooling.mean_sqrt_len_tokens", "sentence_pooling",
           "sum over the root of the number of admitted rows", "no admitted row, as for the mean"),
    Preset("sentence-transformers.Pooling.weightedmean", "sentence_pooling",
           "weights 1..S by physical column, where the mask admits the row",
           "no admitted row; padding on the left, which moves the weights of the content, unless it is asked for"),
    Preset("sentence-transformers.Pooling.lasttoken", "sentence_pooling", "last row that the mask admits",
           "no admitted row, whose vector is zero there"),
    Preset("sentence-transformers.Normalize", "sentence_normalize",
           "the pooled vector over max(length, 1e-12); a stage of its own, behind the pooling",
           "modules in another order: rows normalised before the pooling are another readout"),
    Preset("sentence-transformers.CrossEncoder.predict", "predict_pairs",
           "pairs sorted by length, scored, activated (sigmoid for one output, none for more), in the input's order",
           "pairs without stable ids, an activation that is not stated, a softmax of what is no logit"),
)


def preset(name: str) -> Preset:
    """The record of a name; ReadoutError for an unknown one."""
    found = {one.name: one for one in PRESETS}
    require(name in found, "preset", name, ", ".join(found))
    return found[name]
