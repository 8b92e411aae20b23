"""A file is read once for all values of its parameters: what does not depend on them is not found out again."""

from __future__ import annotations

import pytest

from tile2cu.frontend import host, programs
from tile2cu.frontend.reading import Reading
from tile2cu.frontend.scope import Env

TEXT = """
import tilelang
import tilelang.language as T
from sizes import LENGTH

@tilelang.jit
def scale(M, dtype, block=64, other=32):
    if M % 128:
        raise ValueError("no whole tiles")

    @T.prim_func
    def main(A: T.Tensor((M, other), dtype), B: T.Tensor((M, other), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            tile = T.alloc_fragment((block, other), dtype)
            T.copy(A[bx * block, 0], tile)
            T.copy(tile, B[bx * block, 0])
    return main

if __name__ == "__main__":
    scale(LENGTH, "float32")
"""
BESIDE = {"sizes.py": "LENGTH = 4096\n"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each run of a file as a program."""
    made: list[bool] = []
    module_scope = host.module_scope

    def noted(*args: object, main: bool) -> Env:
        if main:
            made.append(main)
        return module_scope(*args, main=main)  # type: ignore[arg-type]

    monkeypatch.setattr(host, "module_scope", noted)
    return made


def test_other_values_are_traced_without_the_driver(runs: list[bool]) -> None:
    reading = Reading(None, TEXT, read=BESIDE.get)
    found = {block: reading.programs("scale", {"block": block}) for block in (64, 32, 128)}
    assert len(runs) == 1
    for block, traced in found.items():
        assert traced == programs(None, TEXT, kernel="scale", bindings={"block": block}, read=BESIDE.get)
    assert [name for name, _ in found[32][0].source.imports] == ["sizes.py"]


def test_the_first_trace_decides_no_other_ones_values() -> None:
    reading = Reading(None, TEXT, read=BESIDE.get, bindings={"M": 256, "dtype": "float32"})
    reading.programs("scale")
    (program,) = reading.programs("scale", {"M": 512, "dtype": "float16"})
    assert program == programs(None, TEXT, bindings={"M": 512, "dtype": "float16"}, read=BESIDE.get)[0]
