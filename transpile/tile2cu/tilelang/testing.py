"""`tilelang.testing`: what tests in TileLang's style use. Needs pytest where a test is marked or run."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tile2cu.tilelang.options import DEVICE
from tile2cu.tilelang.symbols import others
from tile2cu.tilelang.utils.tensor import torch_assert_close
from tile2cu_runtime.device import amd_architectures, compute_capability

__all__ = [
    "main",
    "process_func",
    "regression",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cuda_or_cdna",
    "requires_package",
    "requires_rocm",
    "set_random_seed",
    "torch_assert_close",
]
_OPERATORS = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt, "eq": operator.eq}

Test = Callable[..., Any]


def _skip_unless(condition: bool, reason: str) -> Callable[[Test], Test]:
    def mark(test: Test) -> Test:
        if condition:
            return test
        import pytest

        marked: Test = pytest.mark.skip(reason=reason)(test)
        return marked

    return mark


def _on_engine() -> bool:
    import os

    return os.environ.get(DEVICE) == "cpu"


def requires_cuda(test: Test) -> Test:
    """Skips a test where neither a GPU of NVIDIA is nor the CPU engine is asked for."""
    return _skip_unless(compute_capability() is not None or _on_engine(), f"needs a GPU, or {DEVICE}=cpu")(test)


def requires_cuda_or_cdna(test: Test) -> Test:
    """Skips a test where neither a GPU nor the CPU engine is."""
    found = compute_capability() is not None or bool(amd_architectures()) or _on_engine()
    return _skip_unless(found, f"needs a GPU, or {DEVICE}=cpu")(test)


def requires_rocm(test: Test) -> Test:
    """Skips a test where no GPU of AMD is."""
    return _skip_unless(bool(amd_architectures()), "needs a GPU of AMD")(test)


requires_cdna = requires_rocm


def requires_gfx950(test: Test) -> Test:
    """Skips a test where no gfx950 is."""
    return _skip_unless("gfx950" in amd_architectures(), "needs a gfx950")(test)


def requires_package(*names: str) -> Callable[[Test], Test]:
    """Skips a test where a package is not installed."""
    import importlib.util

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return _skip_unless(not missing, f"needs {', '.join(missing)}")


def requires_cuda_compute_version(major: int, minor: int = 0, mode: str = "ge") -> Callable[[Test], Test]:
    """Skips a test on a GPU of another compute capability."""
    found = compute_capability() or (0, 0)
    return _skip_unless(_OPERATORS[mode](found, (major, minor)), f"needs compute capability {mode} {major}.{minor}")


# The same for one relation each.
requires_cuda_compute_version_ge = requires_cuda_compute_version
requires_cuda_compute_version_gt = partial(requires_cuda_compute_version, mode="gt")
requires_cuda_compute_version_le = partial(requires_cuda_compute_version, mode="le")
requires_cuda_compute_version_lt = partial(requires_cuda_compute_version, mode="lt")
requires_cuda_compute_version_eq = partial(requires_cuda_compute_version, mode="eq")


def main() -> None:
    """Runs the tests of the calling file with pytest."""
    import pytest

    file = inspect.getsourcefile(sys._getframe(1))
    sys.exit(pytest.main([str(file), *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seeds Python's, NumPy's and torch's generators."""
    import random

    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def process_func(func: Callable[..., float], name: str | None = None, **arguments: Any) -> float:
    """Calls a function that measures, and prints what it returns, in milliseconds."""
    found = func(**arguments)
    print(f"{name or func.__module__}: {found} ms")
    return found


def regression(prefixes: Any = None) -> None:
    """Calls the functions of the calling file whose names begin with `regression_`."""
    for name, found in list(sys._getframe(1).f_globals.items()):
        if name.startswith("regression_") and callable(found):
            found()


__getattr__ = others(__name__)
