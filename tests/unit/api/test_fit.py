"""What is offered when tiles do not fit: it fits, it is the largest that does, and nothing is offered unproved."""

import json
import re
from pathlib import Path

import pytest

import tile2cu
from tile2cu.api import resolve_launches
from tile2cu.core.decisions import FEWER_STAGES
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Loop
from tile2cu.core.shared_memory import SharedBudget, TooLarge
from tile2cu.fit import with_help
from tile2cu.frontend import programs
from tile2cu.targets import find

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
        ("gemm_relu.py", {"block_M": 256, "block_N": 256, "threads": 256, "block_K": 128}),
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
        assert not fits_as_asked(path, target, **{**bindings, **setting, name: 2 * value})


def fits_as_asked(path: Path, target: str, **bindings: object) -> bool:
    """Whether the tiles fit with as many stages as the file asks for."""
    try:
        (emitted,) = tile2cu.emit(path, target=target, **bindings).values()
    except Tile2CuError as error:
        assert error.code == "T2C-L020"
        return False
    return "asked for and do not fit" not in emitted.source


def test_as_many_stages_as_fit_are_taken_and_the_rest_is_explained(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(LITERAL, encoding="utf-8")
    (emitted,) = tile2cu.emit(tmp_path / "twice.py", target="cuda:sm_80").values()
    assert json.loads(emitted.manifest)["launch"]["shared_bytes"] == (256 * 128 + 128 * 256) * 2
    (program,) = programs(None, LITERAL, kernel="twice", bindings={})
    (context,) = resolve_launches(program, find("cuda:sm_80"))
    loop = next(stmt for stmt in context.statements if isinstance(stmt, Loop))
    assert (loop.num_stages, loop.stages_asked) == (1, 3)
    assert str(context.facts[loop, FEWER_STAGES]) == "their tiles do not fit into shared memory"


def test_smaller_tiles_with_fewer_stages_are_offered_where_no_stages_fit(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(LITERAL, encoding="utf-8")
    setting, total = offered(tmp_path / "twice.py", "cuda:sm_89")
    assert (setting, total) == ({"rows": 128, "num_stages": 1}, (128 * 128 + 128 * 256) * 2)
    (emitted,) = tile2cu.emit(tmp_path / "twice.py", target="cuda:sm_89", rows=128).values()
    assert json.loads(emitted.manifest)["launch"]["shared_bytes"] == total


def test_any_number_of_stages_ends_in_some_that_fit(tmp_path: Path) -> None:
    text = LITERAL.replace("num_stages=3", "num_stages=2**64")
    (tmp_path / "twice.py").write_text(text, encoding="utf-8")
    (emitted,) = tile2cu.emit(tmp_path / "twice.py", target="cuda:sm_89", rows=128).values()
    assert json.loads(emitted.manifest)["launch"]["shared_bytes"] == (128 * 128 + 128 * 256) * 2
    assert offered(tmp_path / "twice.py", "cuda:sm_89")[0] == {"rows": 128, "num_stages": 1}


def test_extents_of_tensors_are_offered_only_where_nothing_else_is(tmp_path: Path) -> None:
    """`rows` is a tensor's extent here, and at last what is offered."""
    text = LITERAL.replace("T.Tensor((M, 256)", "T.Tensor((rows, 256)")
    (tmp_path / "twice.py").write_text(
        text.replace("def twice(M, N, rows=256)", "def twice(M, N, rows=256, cols=256)"), encoding="utf-8"
    )
    assert offered(tmp_path / "twice.py", "cuda:sm_89")[0] == {"rows": 128, "num_stages": 1}
    text = text.replace('128), "float16")\n            B', 'cols), "float16")\n            B')
    text = text.replace("T.alloc_shared((128, 256)", "T.alloc_shared((cols, 256)").replace(
        "ceildiv(N, 128)", "ceildiv(N, cols)"
    )
    (tmp_path / "twice.py").write_text(
        text.replace("rows=256)", "rows=256, cols=128)").replace("k * 128", "k * cols"), encoding="utf-8"
    )
    assert "rows" not in offered(tmp_path / "twice.py", "cuda:sm_89")[0]


def test_a_setting_that_does_not_settle_is_passed_over(tmp_path: Path) -> None:
    (program,) = programs(None, LITERAL, kernel="twice", bindings={})
    budget = SharedBudget((("S", 200_000),), 200_000, 166_912)
    error = TooLarge(budget, "sm_80", program.launches[0].span)
    tried: list[int] = []

    def refuse(smaller: object) -> int:
        tried.append(1)
        raise Tile2CuError("T2C-L010", "no such warps")

    refused = with_help(error, program, 166_912, lambda sizes: (program,), refuse)
    assert refused.help == "use smaller tiles or fewer stages"
    assert len(tried) > 2
