"""Runs: bits across degrees and paths, learning, resume, contracts, errors."""

import dx_train
import tiny


def test_bits_across_paths_and_degrees():
    """Weights after every step of the run, with augmentation, variants and every loss."""
    first = None
    for path in dx_train.available_paths():
        for degree in (1, 2, 3, 4, 7):
            with dx_train.kernel_path(path), dx_train.degree(degree):
                digest = tiny.train().parameters.digest()
            first = first or digest
            assert digest == first, (path, degree)
    assert first != tiny.model().parameters.digest()
