"""A model's parameters as a file: the container of container.py, checked against the tensor table of its config."""
from pathlib import Path

from .container import ModelFileError, file_digest, read_container, write_container

FILE_NAME = "model.safetensors"


def model_path(path) -> Path:
    """The file that a folder or file name means."""
    path = Path(path)
    return path / FILE_NAME if path.is_dir() else path


def save_model(kind: str, parameters, folder) -> str:
    """Writes parameters to model.safetensors in the folder, made if need be; returns the file's SHA-256 (hex)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return write_container(folder / FILE_NAME, kind, parameters.config.to_json(), parameters.to_container())


def load_model(kind: str, config_type, set_type, path, digest: str | None = None):
    """The parameters (a set_type) of a file of that kind whose config is a config_type.

    Raises ModelFileError, naming file and reason, when anything is not as its config says; OSError.
    """
    path = model_path(path)
    if digest is not None:
        found = file_digest(path)
        if found != digest.lower():
            raise ModelFileError(f"{path}: its SHA-256 is {found}: expected {digest.lower()}")
    config, tensors = read_container(path, kind)
    try:
        config = config_type.from_json(config)
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None
    table = {spec.name: spec for spec in set_type.table(config)}
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
    parameters = set_type(config)
    parameters.load_container(tensors)
    return parameters
