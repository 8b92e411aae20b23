"""`import tilelang` in a program that is run unchanged: its modules are those of tile2cu.tilelang.

A module that tile2cu.tilelang does not have is made of symbols: the program can import from it, and a name of it says
that it has no value where one is asked for.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import pkgutil
import sys
from types import ModuleType
from typing import Any

from tile2cu.tilelang.symbols import DType, Symbol

_OWN = "tile2cu.tilelang"
_IN_PART = ("carver", "contrib", "language", "tools", "transform", "utils")  # some of their modules are here
_STANDS_FOR = ("tilelang", "tvm")
# TileLang's modules that tile2cu.tilelang does not have.
WITHOUT_COUNTERPART = frozenset(
    (
        "analysis",
        "autodd",
        "backend",
        "common",
        "cpu",
        "cuda",
        "engine",
        "intrinsics",
        "ir",
        "metal",
        "primitives",
        "quantize",
        "rocm",
        "tileop",
        "webgpu",
    )
)
NAMES_WITHOUT_COUNTERPART = frozenset(
    (
        "build_date",
        "deprecated",
        "libinfo",
        "prepend_dll_search_path",
        "register_c_postproc",
        "register_cuda_postproc",
        "register_hip_postproc",
    )
)
# Modules of TileLang whose names are in others here.
_ELSEWHERE = {
    "autotuner.capture": "autotuner",
    "autotuner.tuner": "autotuner",
    "cache": "env",
    "dtypes": "language.dtypes",
    "engine.lower": "lowering",
    "jit.kernel": "kernel",
    "profiler.bench": "profiler",
}
_VALUES: dict[str, Any] = {"DataType": DType}


class _Symbols(ModuleType):
    """A module whose names are symbols."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _VALUES.get(name) or Symbol(f"{self.__name__}.{name}", f"{_bare(self.__name__)}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """A class that was imported by its name, as `from tilelang.carver.arch import CUDA`."""
        return Symbol(self.__name__, _bare(self.__name__))(*arguments, **options)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of TileLang and of its TVM, below the `roots`, that tile2cu.tilelang does not have."""

    def __init__(self, *roots: str) -> None:
        self.roots = roots

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not any(fullname == root or fullname.startswith(f"{root}.") for root in self.roots):
            return None
        part = _bare(fullname).split(".")
        if part[0] == "tvm" or (len(part) > 1 and (part[1] in WITHOUT_COUNTERPART or part[1] in _IN_PART)):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Symbols(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


def _bare(name: str) -> str:
    return name.removeprefix("tile2cu.")


def install() -> None:
    """Has `import tilelang` and `import tvm` find tile2cu's modules, in this process, whatever is installed."""
    own = importlib.import_module(_OWN)
    for name in _STANDS_FOR:
        for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[loaded]
    for found in pkgutil.walk_packages(own.__path__, f"{_OWN}."):
        if not found.name.endswith("__main__"):
            sys.modules[_bare(found.name)] = importlib.import_module(found.name)
    for name, where in _ELSEWHERE.items():
        sys.modules[f"tilelang.{name}"] = importlib.import_module(f"{_OWN}.{where}")
    sys.modules["tilelang"] = own
    sys.meta_path.insert(0, _Finder(*_STANDS_FOR, _OWN))
    own.tvm = importlib.import_module("tvm")  # type: ignore[attr-defined]


def find_others() -> None:
    """Has `from tile2cu.tilelang.layout import ...` find symbols where tile2cu.tilelang has no such module."""
    sys.meta_path.append(_Finder(_OWN))
    for name, where in _ELSEWHERE.items():
        module = sys.modules[f"{_OWN}.{name}"] = importlib.import_module(f"{_OWN}.{where}")
        parent, _, own = f"{_OWN}.{name}".rpartition(".")
        setattr(importlib.import_module(parent), own, module)
