"""The formula in the head of an emitted source, evaluated by NumPy, is what the reference interpreter computes."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.reference import interpret, numpy_dtype
from tests.golden.cases import GOLDEN, Golden
from tile2cu.core.expr import int_const, static_value, substitute
from tile2cu.core.program import Buffer, Program
from tile2cu.emitter.formula import formula_lines
from tile2cu.frontend import programs
from tile2cu.targets import find

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZES = {"M": 5, "N": 32, "K": 96}  # of a dimension of that name; others are 3
STATED = {  # emitted sources whose head begins with a formula of their program
    "vector_add", "row_softmax", "gemm_relu", "gemm_relu_eager", "linear", "linear_residual", "linear_int4", "gemm",
    "dequant_gemm", "w2a8_gemm", "layernorm", "rmsnorm_silu",
}  # fmt: skip
FUNCTIONS: dict[str, object] = {
    "exp": np.exp,
    "max": np.maximum,
    "erf": np.vectorize(math.erf),
    "maximum": np.maximum.reduce,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
# A row's sum is evaluated anew for each term of the sum that contains it: 1024 terms take 4 s.
SHORT_ROWS: dict[str, dict[str, object]] = {"layernorm.py": {"dim": 128}, "row_softmax.py": {"N": 64}}
CASES = [each for each in GOLDEN if each.style == "tl" and each.folder in ("cuda/sm_80", "cuda/sm_90a")]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("golden", CASES, ids=lambda each: f"{each.folder}/{each.example}")
def test_formulas_compute_what_the_kernel_computes(golden: Golden) -> None:
    target = find(golden.target)
    path = EXAMPLES / golden.example
    bindings = golden.bindings | SHORT_ROWS.get(golden.example, {})
    for program in programs(path, path.read_text(encoding="utf-8"), bindings=bindings, target=target):
        lines = formula_lines(program)
        if golden.folder == "cuda/sm_80":
            assert bool(lines) == (program.name in STATED), program.name
        if lines:
            check(program, lines)


def check(program: Program, lines: tuple[str, ...]) -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    numbers = {size: int_const(SIZES.get(size.name, 3)) for size in program.sizes}
    given: dict[str, np.ndarray] = {}
    for tensor in program.params:
        assert isinstance(tensor, Buffer)
        shape = [int(static_value(substitute(extent, numbers)) or 0) for extent in tensor.shape]
        whole = rng.integers(0, 255 if tensor.dtype.name == "uint8" else 4, shape)
        given[tensor.name] = (whole if tensor.dtype.is_int else rng.normal(size=shape)).astype(
            numpy_dtype(tensor.dtype)
        )
    names: dict[str, object] = {size.name: static_value(number) for size, number in numbers.items()}
    names |= {constant.name: constant.value for constant in program.constants}
    found = interpret(program, given)
    for line in lines:
        name, expected = computed(line, given, names)
        np.testing.assert_allclose(found[name].astype(np.float64), expected, rtol=2e-2, atol=2e-2)


def computed(line: str, given: dict[str, np.ndarray], names: dict[str, object]) -> tuple[str, np.ndarray]:
    """The output's name, and its elements as the formula has them."""
    body, *where = line.split(", where ")
    target, text = body.split(" = ", 1)
    name, indices = re.fullmatch(r"(\w+)\[(.*)\]", target).groups()  # type: ignore[union-attr]
    letters = indices.split(", ")
    axes = np.ogrid[tuple(slice(0, extent) for extent in given[name].shape)]
    data = {key: each.astype(np.int64 if each.dtype.kind in "iu" else np.float64) for key, each in given.items()}
    values: dict[str, object] = {**FUNCTIONS, **names, **data}
    values |= dict(zip(letters, axes, strict=True))
    for each in reversed(where):
        key, definition = each.split(" = ", 1)
        text = re.sub(rf"\b{key}\b", f"({definition})", text)
    shape = given[name].shape
    return name, np.broadcast_to(eval(summed(text, given), values), shape)


def summed(text: str, given: dict[str, np.ndarray]) -> str:
    """The text with loops for its sums: their extents are those of the tensors that their variable indexes."""
    found = re.search(r"\b(sum|max)_(\w)\(", text)
    if found is None:
        return text
    end, depth = found.end(), 1
    while depth:
        depth += (text[end] in "([") - (text[end] in ")]")
        end += 1
    term, var = text[found.end() : end - 1], found[2]
    extent = next(
        given[name].shape[indices.split(", ").index(var)]
        for name, indices in re.findall(r"\b(\w+)\[([^\[\]]*)\]", term)
        if var in indices.split(", ")
    )
    terms = f"[{summed(term, given)} for {var} in range({extent})]"
    function = "sum" if found[1] == "sum" else "maximum"
    return f"{text[: found.start()]}{function}({terms}){summed(text[end:], given)}"


def test_tensors_that_no_caller_gives_have_no_formula() -> None:
    text = """
import tilelang.language as T

@T.prim_func
def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    C = T.alloc_global((256,), "float32")
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + 1.0
        for i in T.Parallel(128):
            B[bx * 128 + i] = C[bx * 128 + i] * 2.0
"""
    (program,) = programs(None, text)
    assert not formula_lines(program)
