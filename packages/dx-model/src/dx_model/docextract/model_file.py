"""A docextract model as a file (model_files.py), with the fields that its reader expects."""
from ..container import ModelFileError
from ..model_files import load_model, model_path, save_model
from .config import DocExtractConfig
from .parameters import Parameters

KIND = "docextract"


def save_parameters(parameters: Parameters, folder) -> str:
    """DocExtract.save_pretrained."""
    return save_model(KIND, parameters, folder)


def load_parameters(path, fields=None, digest: str | None = None) -> Parameters:
    """DocExtract.from_pretrained."""
    parameters = load_model(KIND, DocExtractConfig, Parameters, path, digest)
    own = parameters.config.fields
    if fields is not None and tuple(fields) != own:
        raise ModelFileError(f"{model_path(path)}: {_difference(own, tuple(fields))}")
    return parameters


def _difference(own: tuple, wanted: tuple) -> str:
    missing, extra = [n for n in wanted if n not in own], [n for n in own if n not in wanted]
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"has {', '.join(extra)} besides"] if extra else []
    return (f"the model's {len(own)} fields are {', '.join(own) or 'none'}; expected are {len(wanted)}: "
            f"{', '.join(wanted) or 'none'}; the model {' and '.join(parts) or 'has them in another order'}")
