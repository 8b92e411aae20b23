"""What is offered when tiles do not fit: it fits, it is the largest that does, and nothing is offered unproved."""

import json
import re
from pathlib import Path

import pytest

import tile2cu
from tile2cu.core.errors import Tile2CuError
from tile2cu.fit import with_help
from tile2cu.frontend import programs

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LITERAL = """\
import tilelang.language as T


def twice(M, N, rows=256):
    @T.prim_func
    def body(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, 256), "float16")):
        with T.Kernel(T.ceildiv(M, rows), threads=256) as bx:
            A = T.alloc_shared((rows, 128), "float16")
            B = T.alloc_shared((128, 256), "float16")
            C = T.alloc_fragment((rows, 256), "float32")
            T.clear(C)
            for k in T.Pipelined(T.ceildiv(N, 128), num_stages=3):
                T.copy(X[bx * rows, k * 128], A)
                T.copy(X[k * 128, 0], B)
                T.gemm(A, B, C)
            T.copy(C, Y[bx * rows, 0])

    return body
"""


def offered(path: Path, target: str, **bindings: object) -> tuple[dict[str, int], int]:
    """The setting and the bytes in the help of the diagnostic."""
    with pytest.raises(Tile2CuError) as caught:
        tile2cu.emit(path, target=target, **bindings)
    assert caught.value.code == "T2C-L020"
    found = re.fullmatch(r"the largest setting found to fit is (.*), with ([\d,]+) bytes", caught.value.help)
    assert found, caught.value.help
    setting = {name: int(value) for name, value in (each.split("=") for each in found[1].split(", "))}
    return setting, int(found[2].replace(",", ""))


@pytest.mark.parametrize(
    ("example", "bindings"),
    [
        ("gemm_relu.py", {"block_M": 256, "block_N": 256, "threads": 256, "block_K": 64}),
        ("attention.py", {"is_causal": True, "block_N": 256}),
    ],
)
def test_what_is_offered_fits_and_twice_as_much_does_not(example: str, bindings: dict[str, object]) -> None:
    path, target = EXAMPLES / example, "cuda:sm_89"
    setting, total = offered(path, target, **bindings)
    (emitted,) = tile2cu.emit(path, target=target, **{**bindings, **setting}).values()
    launch = json.loads(emitted.manifest)["launch"]
    assert launch["shared_bytes"] == total <= launch["shared_limit"]
    for name, value in setting.items():
        with pytest.raises(Tile2CuError, match="shared memory"):
            tile2cu.emit(path, target=target, **{**bindings, **setting, name: 2 * value})


def test_stages_that_the_file_fixes_are_offered_too(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(LITERAL)
    setting, total = offered(tmp_path / "twice.py", "cuda:sm_80")
    assert (setting, total) == ({"rows": 64, "num_stages": 2}, (64 * 128 + 128 * 256) * 2 * 2)
    (tmp_path / "twice.py").write_text(LITERAL.replace("num_stages=3", "num_stages=2"))
    (emitted,) = tile2cu.emit(tmp_path / "twice.py", rows=64).values()
    assert json.loads(emitted.manifest)["launch"]["shared_bytes"] == total


def test_a_setting_that_does_not_settle_is_passed_over(tmp_path: Path) -> None:
    (program,) = programs(None, LITERAL, kernel="twice", bindings={})
    error = Tile2CuError("T2C-L020", "too much")
    tried: list[int] = []

    def refuse(smaller: object) -> int:
        tried.append(1)
        raise Tile2CuError("T2C-L010", "no such warps")

    refused = with_help(error, program, 166_912, lambda sizes: (program,), refuse)
    assert refused.help == "use smaller tiles or fewer stages"
    assert len(tried) > 2
