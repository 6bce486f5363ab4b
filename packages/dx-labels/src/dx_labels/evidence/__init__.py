"""Evidence of a release: split roles and who may read them, cases, frozen plans, slices, candidate against parent."""
from .audit import Ledger as Ledger
from .paired import paired as paired
from .plan import EvaluationPlan as EvaluationPlan
from .plan import plan_from_json as plan_from_json
from .roles import SplitManifest as SplitManifest
from .roles import leaks as leaks
from .suite import evaluate_cases as evaluate_cases
