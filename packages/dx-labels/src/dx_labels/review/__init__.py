"""The review page: a project's pages in the browser, with labels and predictions, to be looked at and corrected."""
from .server import ReviewServer as ReviewServer
from .server import serve as serve
from .session import Session as Session
