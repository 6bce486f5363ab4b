"""Difference quotients for the tests of heads: every element of every array moved both ways."""
import numpy as np


def check_slopes(loss, arrays, gradients, step=2.0**-8, tolerance=2e-3):
    """loss(): float, reading the arrays; gradients: of the same shapes. Arrays are moved in place and put back."""
    for array, gradient in zip(arrays, gradients, strict=True):
        assert array.shape == gradient.shape and gradient.dtype == np.float32
        for place in np.ndindex(array.shape):
            kept = array[place]
            array[place] = kept + np.float32(step)
            high, up = float(array[place]), loss()
            array[place] = kept - np.float32(step)
            low, down = float(array[place]), loss()
            array[place] = kept
            slope = (up - down) / (high - low)
            assert abs(slope - gradient[place]) < tolerance * max(1.0, abs(slope)), (place, slope, gradient[place])
