"""Labelling models: who is asked for the values of a document."""
from .base import ask_all as ask_all
from .base import Labeller as Labeller
from .base import LabellerError as LabellerError
from .base import page_lines as page_lines
from .cache import Cached as Cached
from .chat import ChatLabeller as ChatLabeller
from .command import CommandLabeller as CommandLabeller
from .from_file import FileLabeller as FileLabeller
