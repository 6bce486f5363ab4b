"""A release that answers: LocalFirst from a bundle's own files, checked first."""
from pathlib import Path

from ..local_first import LocalFirst, asking
from ..schema import schema_from_json
from .bundle import SUMS, record, verify_files
from .graph import ReleaseError
from .of_project import loaded
from .store import CURRENT, Store
from .verify import verify_release


def is_release(path) -> bool:
    """Is there a release, or a folder of releases of which one is current?"""
    return Path(path, SUMS).is_file() or Path(path, CURRENT).is_file()


def local_first(path, labeller=None) -> LocalFirst:
    """LocalFirst of a docextract release, or of the current release of a folder of releases: its model, schema and
    thresholds, after its files and its tuple were checked; `labeller` is asked for what the model is not sure of.
    ReleaseError where anything was changed."""
    folder = Path(path) if Path(path, SUMS).is_file() else Store(path).current_path()
    if verify_release(folder)["kind"] != "docextract":
        raise ReleaseError(f"{folder} is a readout's release: dx extract runs those of docextract projects")
    files = verify_files(folder)
    model, thresholds = loaded(files)
    schema = schema_from_json(record(files, "manifest/artifact/schema.json"))
    return LocalFirst(model, thresholds, None if labeller is None else asking(labeller, schema), schema)
