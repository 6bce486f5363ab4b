"""Certificates: what shows that every parameter gradient of the vision transformer is Jacobian transposed times
cotangent, for the wiring and the kernels that ship (docs/vit.md)."""
