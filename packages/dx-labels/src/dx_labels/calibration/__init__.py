"""Fitting of calibrators on a split of their own, and figures that say how calibrated scores are (docs/readout.md)."""
from .conformal import fit_conformal as fit_conformal
from .isotonic import fit_isotonic as fit_isotonic
from .metrics import CalibrationBin as CalibrationBin
from .metrics import brier_score as brier_score
from .metrics import calibration_error as calibration_error
from .metrics import negative_log_likelihood as negative_log_likelihood
from .metrics import positive_class_error as positive_class_error
from .metrics import reliability as reliability
from .metrics import top_class_error as top_class_error
from .platt import fit_platt as fit_platt
from .scaling import fit_matrix_scaling as fit_matrix_scaling
from .scaling import fit_temperature as fit_temperature
from .scaling import fit_vector_scaling as fit_vector_scaling
from .split import CalibrationSplit as CalibrationSplit
from .split import calibration_split as calibration_split
