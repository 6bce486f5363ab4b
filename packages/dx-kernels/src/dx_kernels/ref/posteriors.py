"""Reference of dx_kernels.posteriors."""
from .page_model import Chain, models, power


def run_posteriors(logits, repeated, runs, floor=float("inf")):
    """(absent, p, found, found_p) as lists; see dx_kernels.run_posteriors."""
    absent, p, found = [0.0] * len(repeated), [0.0] * len(runs), []
    for exclusive, answered in models(repeated):
        chain = Chain(logits, len(repeated), exclusive).forward().backward()
        for k in answered:
            if repeated[k]:
                without = Chain(logits, len(repeated), exclusive, closed=k).forward()
                mass, e = without.z, without.ez
            else:
                mass, e = chain.absent_mass(k)
            absent[k] = min(mass * power(e - chain.ez) / chain.z, 1.0)
            for x, run in enumerate(runs):
                if run[0] == k:
                    p[x] = chain.probability(run[1], run[2], k)
            for first in range(chain.n if floor <= 1 else 0):
                left, last = chain.start[first][k], first
                while left >= floor and last < chain.n:
                    probability = chain.probability(first, last, k)
                    if probability >= floor:
                        found.append((k, first, last, probability))
                    left = left - probability
                    last += 1
    found.sort(key=lambda run: run[:3])
    return absent, p, [list(run[:3]) for run in found], [run[3] for run in found]
