"""Going on from a model with other or more fields, and pages on which only some fields are labelled."""
import dataclasses

import numpy as np

from .below import DocExtractConfig, Parameters, Targets, initial_parameters

HEADS = ("tag_head", "role_head", "doc_head")


def row_names(config: DocExtractConfig) -> dict[str, list[str]]:
    """What each row of a head stands for: tags and roles as O, B-name, I-name, …; document types by name."""
    bio = [["O"] + [f"{prefix}-{name}" for name in names for prefix in "BI"] for names in (config.fields, config.roles)]
    return {"tag_head": bio[0], "role_head": bio[1], "doc_head": list(config.doc_types) or ["(none)"]}


def continue_parameters(parameters: Parameters, config: DocExtractConfig, seed: int = 0) -> Parameters:
    """Parameters of `config` that go on from a model's: heads' rows mapped by name, everything else kept.

    Rows of names that both have keep every byte, wherever they stand; new names get the initial rows of `seed`; rows of
    names that `config` lacks are left behind. ValueError: the two differ in anything but fields (and which of them are
    repeated), roles and document types.
    """
    old = parameters.config
    for spec in dataclasses.fields(DocExtractConfig):
        before, after = getattr(old, spec.name), getattr(config, spec.name)
        if spec.name not in ("fields", "repeated", "roles", "doc_types") and before != after:
            raise ValueError(f"{spec.name} = {after!r}: expected {before!r}, as the model to continue from")
    result = initial_parameters(config, seed)
    old_names, new_names = row_names(old), row_names(config)
    for name, array in result.items():
        head = name.split(".")[0]
        if head not in HEADS:
            array[...] = parameters[name]
            continue
        for row, label in enumerate(new_names[head]):
            if label in old_names[head]:
                array[row] = parameters[name][old_names[head].index(label)]
    return result


def only_annotated(targets: Targets, config: DocExtractConfig, annotated) -> Targets:
    """The targets of a page on which only the fields named in `annotated` were labelled.

    About the other fields nothing is known: a word that is no part of an annotated value may belong to one of them, so
    its tag is -1 instead of O, and the other fields have no term in the run loss (which sums them out). Where every
    field is annotated the targets stay as they are. ValueError: a name that is no field of the model.
    """
    annotated = tuple(annotated)
    for name in annotated:
        if name not in config.fields:
            raise ValueError(f"annotated names {name!r}: expected some of {', '.join(config.fields)}")
    known = np.array([name in annotated for name in config.fields], bool)
    if known.all():
        return targets
    tag = targets.tag
    if tag is not None:
        field = np.where(tag > 0, (tag - 1) // 2, 0)
        tag = np.where((tag > 0) & known[field], tag, np.int32(-1)).astype(np.int32)
    keep = known[targets.run_fields]
    renumbered = np.cumsum(keep, dtype=np.int32) - 1  # exact: whole numbers
    places = targets.run_places[keep[targets.run_places[:, 0]]].copy()
    places[:, 0] = renumbered[places[:, 0]]
    return dataclasses.replace(targets, tag=tag, run_fields=targets.run_fields[keep], run_places=places)
