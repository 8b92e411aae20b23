"""Tiles of any rank, their parts and their reductions: small kernels, run with every check, compared with NumPy."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(1)


def integers(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(4, 8, 64), (5, 6, 100), (2, 64, 1)])
def test_a_fragment_of_rank_3_is_reduced_along_its_last_dimension(shape: tuple[int, int, int], tmp_path: Path) -> None:
    statements = f"""
        L = T.alloc_fragment({shape}, "float32")
        r = T.alloc_fragment({shape[:2]}, "float32")
        T.copy(X, L)
        T.reduce_sum(L, r, dim=2)
        T.copy(r, Y)
    """
    params = f'X: T.Tensor({shape}, "float32"), Y: T.Tensor({shape[:2]}, "float32")'
    x = integers(*shape)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), x.sum(axis=2))
