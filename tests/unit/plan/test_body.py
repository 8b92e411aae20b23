"""The structure of a plan, apart from any style."""

from pathlib import Path

import pytest

from tests.golden.cases import GOLDEN, Golden
from tile2cu.api import resolved_kernels
from tile2cu.plan import copy_ops, ops, structure
from tile2cu.plan.body import Lowering
from tile2cu.plan.structure import Block, Statement, Where
from tile2cu.targets import find

EXAMPLES = Path(__file__).parents[3] / "examples"


def lowered(case: Golden) -> list[Statement]:
    """The statements of a kernel's body: of its last launch."""
    path = EXAMPLES / case.example
    *_, launches = resolved_kernels(path, kernel=None, target=find(case.target), bindings=case.bindings)
    return statements(Lowering(launches[-1]).body(launches[-1].launch.body, Where()))


def statements(block: Block) -> list[Statement]:
    return [each for paragraph in block for each in paragraph.statements]


def test_a_pipelined_gemm_is_one_loop_with_its_loads_apart() -> None:
    body = lowered(Golden("", "gemm_relu.py"))
    (loop,) = (each.op for each in body if isinstance(each.op, structure.PipelinedLoop))
    assert [type(each.op) for each in statements(loop.loads)] == [copy_ops.Copy, copy_ops.Copy]
    assert [type(each.op) for each in statements(loop.body)] == [ops.Mma]
    assert {tile.name for tile in loop.tiles} == {"A_shared", "B_shared"}
    assert loop.stages == 3 and loop.stores == () and loop.number == 1


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case.folder}/{case.example}")
def test_each_operation_has_the_place_it_comes_from(case: Golden) -> None:
    stack = lowered(case)
    assert stack
    while stack:
        each = stack.pop()
        for op in (*each.before, *each.first, each.op, *each.after):
            assert op.source.span.line > 0
        match each.op:
            case structure.If():
                stack += [*statements(each.op.then), *statements(each.op.orelse)]
            case structure.For() | structure.While() | structure.OfGroup() | structure.PipelinedLoop():
                stack += statements(each.op.body)
            case structure.Elementwise() | structure.ByOneHolder():
                assert each.op.body
                stack += each.op.body
            case _:
                pass
