"""A docextract model as a file: the container of container.py, checked against the tensor table of its config."""
from pathlib import Path

from ..container import ModelFileError, file_digest, read_container, write_container
from .config import DocExtractConfig, tensor_table
from .parameters import Parameters

KIND, FILE_NAME = "docextract", "model.safetensors"


def model_path(path) -> Path:
    """The file that a folder or file name means."""
    path = Path(path)
    return path / FILE_NAME if path.is_dir() else path


def save_parameters(parameters: Parameters, folder) -> str:
    """DocExtract.save_pretrained."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return write_container(folder / FILE_NAME, KIND, parameters.config.to_json(), parameters.to_container())


def load_parameters(path, fields=None, digest: str | None = None) -> Parameters:
    """DocExtract.from_pretrained."""
    path = model_path(path)
    if digest is not None:
        found = file_digest(path)
        if found != digest.lower():
            raise ModelFileError(f"{path}: its SHA-256 is {found}: expected {digest.lower()}")
    config, tensors = read_container(path, KIND)
    try:
        config = DocExtractConfig.from_json(config)
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None
    if fields is not None and tuple(fields) != config.fields:
        raise ModelFileError(f"{path}: {_difference(config.fields, tuple(fields))}")
    table = {spec.name: spec for spec in tensor_table(config)}
    for name, spec in table.items():
        if name not in tensors:
            raise ModelFileError(f"{path}: tensor {name} is missing")
        if tensors[name].shape != spec.shape:
            raise ModelFileError(f"{path}: tensor {name} has shape {tensors[name].shape}: expected {spec.shape}, as "
                                 "its config says")
    for name in tensors:
        if name not in table:
            raise ModelFileError(f"{path}: tensor {name} does not belong to this model")
    if list(tensors) != list(table):
        wrong = next(a for a, b in zip(tensors, table) if a != b)
        raise ModelFileError(f"{path}: tensor {wrong} is not at its place in the model's order")
    parameters = Parameters(config)
    parameters.load_container(tensors)
    return parameters


def _difference(own: tuple, wanted: tuple) -> str:
    missing, extra = [n for n in wanted if n not in own], [n for n in own if n not in wanted]
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"has {', '.join(extra)} besides"] if extra else []
    return (f"the model's {len(own)} fields are {', '.join(own) or 'none'}; expected are {len(wanted)}: "
            f"{', '.join(wanted) or 'none'}; the model {' and '.join(parts) or 'has them in another order'}")
