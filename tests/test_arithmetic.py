"""Rule 16 of the bit rules: only + - * / sqrt, comparisons and casts, in written order, may decide a bit."""
import re

import pytest
import scope
from arithmetic import violations

FORBIDDEN = {
    "numpy exp": "import numpy as np\ny = np.exp(x)",
    "numpy log under its own name": "import numpy\ny = numpy.log(x)",
    "numpy tanh imported": "from numpy import tanh",
    "numpy power": "import numpy as np\ny = np.power(x, 2)",
    "numpy sum": "import numpy as np\ny = np.sum(x)",
    "array sum": "y = x.sum()",
    "array mean": "y = x.mean(axis=1)",
    "array std": "y = x.std()",
    "numpy median": "import numpy as np\ny = np.median(x)",
    "numpy percentile": "import numpy as np\ny = np.percentile(x, 5)",
    "numpy add.reduce": "import numpy as np\ny = np.add.reduce(x)",
    "matrix product": "y = a @ b",
    "matrix product in place": "a @= b",
    "numpy dot": "import numpy as np\ny = np.dot(a, b)",
    "array dot": "y = a.dot(b)",
    "numpy einsum": "import numpy as np\ny = np.einsum('ij,jk', a, b)",
    "numpy linalg": "import numpy as np\ny = np.linalg.norm(a)",
    "numpy random": "import numpy as np\ny = np.random.default_rng(1)",
    "numpy random imported": "from numpy.random import default_rng",
    "random": "import random",
    "statistics": "from statistics import mean",
    "unstable sort": "import numpy as np\ny = np.sort(x)",
    "unstable argsort": "y = x.argsort()",
    "quicksort by name": "y = x.argsort(kind='quicksort')",
    "partition": "import numpy as np\ny = np.argpartition(x, 3)",
    "builtin sum": "y = sum(x)",
    "power": "y = x ** 2",
    "power in place": "x **= 0.5",
    "pow": "y = pow(x, 2)",
    "math.exp": "import math\ny = math.exp(x)",
    "math.log imported": "from math import log",
    "math.sin under another name": "import math as m\ny = m.sin(x)",
    "loop over a set": "for x in {1, 2}:\n    pass",
    "loop over set()": "for x in set(y):\n    pass",
    "comprehension over a set": "y = [x for x in set(z)]",
    "list of a set": "y = list({a, b})",
    "loop over a name that holds a set": "y = set(z)\nfor x in y:\n    pass",
    "join of a set": "y = ','.join(set(z))",
    "unsorted listdir": "import os\ny = os.listdir(p)",
    "unsorted glob": "y = [f for f in p.glob('*')]",
    "hash": "y = hash(x)",
}
ALLOWED = {
    "the four operations": "y = (a + b) * c / d - e",
    "sqrt": "import math\nimport numpy as np\ny = math.sqrt(x) + np.sqrt(x)",
    "fsum": "import math\ny = math.fsum(x)",
    "stable sort": "import numpy as np\ny = np.argsort(x, kind='stable')\nz = x.argsort(kind='stable')",
    "sorted set": "y = sorted(set(x))\nfor a in sorted({1, 2}):\n    pass",
    "a set made from a set": "y = {f(x) for x in set(z)}",
    "membership": "if x in {1, 2}:\n    pass",
    "sorted glob": "y = sorted(p.glob('*'))",
    "text partition": "a, _, b = text.partition(':')",
    "a whole number on purpose": "y = 2 ** 31  # exact: whole numbers",
    "a constant power of two": "y = 2.0**-126 + 2**31",
    "maximum": "import numpy as np\ny = np.maximum(x, 0) + x.max()",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_each_forbidden_construct_is_caught(name):
    assert len(violations(FORBIDDEN[name])) == 1


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_passes(name):
    assert violations(ALLOWED[name]) == []


def test_the_packages_obey():
    files = scope.files()
    assert len(files) > 10
    wrong = [f"{scope.shown(p)}:{line}: {what}" for p in files
             for line, what in violations(p.read_text(encoding="utf-8"))]
    assert wrong == [], "\n".join(["code that reaches a bit uses:", *wrong])


def test_cython_sources_leave_arithmetic_to_c():
    """A .pyx checks and calls; numpy's arithmetic, libm and Python's sum have no place there."""
    words = re.compile(r"\blibc\.math\b|\bsum\(|\b(np|numpy)\.(exp|log|tanh|sum|mean|dot|matmul|einsum|random|linalg)")
    wrong = [f"{scope.shown(p)}:{i}: {line.strip()}" for p in scope.cython_files()
             for i, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1) if words.search(line)]
    assert len(scope.cython_files()) > 3 and wrong == []


def test_the_exceptions_exist():
    assert scope.stale() == []
