"""Certificates: what shows that every parameter gradient of the vision transformer is Jacobian transposed times
cotangent, for the wiring and the kernels that ship (docs/vit.md). `python -m dx_model.vit certify` runs them."""
from .run import Report as Report
from .run import certify as certify
from .run import table as table
