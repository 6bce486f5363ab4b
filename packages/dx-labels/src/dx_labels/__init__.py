"""dx-labels: labels, schemas, evaluation and the `dx` command. This version: `dx --version`, no data handling yet."""
from .below import available_paths as available_paths
from .below import degree as degree
from .below import get_degree as get_degree
from .below import get_path as get_path
from .below import kernel_path as kernel_path
from .below import DocExtract as DocExtract
from .below import DocExtractConfig as DocExtractConfig
from .below import FineTune as FineTune
from .below import TrainSettings as TrainSettings
from .examples import training_examples as training_examples
from .grounding import Rows as Rows
from .labels import label_document as label_document
from .labels import usable_documents as usable_documents
from .schema import schema_from_json as schema_from_json
from .targets import field_rows as field_rows
from .texts import key as key
from .job import JobError as JobError
from .job import Start as Start
from .job import label_project as label_project
from .job import score_project as score_project
from .job import start_from as start_from
from .job import train_project as train_project
from .project import Project as Project
from .project import ProjectError as ProjectError
from .local_first import LocalFirst as LocalFirst
from .local_first import extract as extract
from .settings import JobSettings as JobSettings
from .settings import SettingsError as SettingsError
from .settings import settings_from_json as settings_from_json
from .evaluation import evaluate as evaluate
from .below import document_from_json as document_from_json
from .targets import relation_rows as relation_rows
from .targets import window_targets as window_targets

__version__ = "0.1.0"
