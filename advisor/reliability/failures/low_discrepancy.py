"""Standard normal deviates from a scrambled Sobol sequence, which covers a cube evenly."""

import math


def normal_deviates(n: int, dimensions: int, seed: int) -> list[list[float]]:
    """Return `n` rows of `dimensions` standard normal deviates, low-discrepancy."""
    if dimensions == 0:
        return [[] for _ in range(n)]
    # Imported here: scipy.stats takes longer than all of advisor may, and few callers draw.
    from scipy.special import ndtri
    from scipy.stats import qmc

    bits = 30
    sequence = qmc.Sobol(dimensions, scramble=True, bits=bits, seed=seed)
    uniform = sequence.random_base2(math.ceil(math.log2(n)))[:n]
    # The grid has cells of 2^-30 and may hold 0: take the middles, so that no deviate is infinite.
    deviates: list[list[float]] = ndtri(uniform + 2.0 ** -(bits + 1)).tolist()
    return deviates
