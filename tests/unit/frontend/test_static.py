"""What is static is evaluated; what is dynamic is program (the rules of partial evaluation)."""

from collections.abc import Callable

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import kernel_names, programs

# expression in the factory, value it must have there
STATIC = {
    "7 // 2 + 7 % 4 * 2**3": "27",
    "-7 // 2": "-4",
    "True and 3 or 4": "3",
    "1 < 2 < 3 != 4": "True",
    "1 < 3 < 2": "False",
    "5 if M is None else 6": "6",
    "len((1, 2, 3)) + max(4, 5) - min([6, 7])": "2",
    "max([], default=3) + min((5,), default=9)": "8",
    "sum(x * x for x in range(4) if x % 2)": "10",
    "[a + b for a in (1, 2) for b in (10, 20)]": "[11, 21, 12, 22]",
    "{k: v for k, v in zip('ab', (1, 2))}['b']": "2",
    "sorted([3, 1, 2], key=lambda x: -x)": "[3, 2, 1]",
    "(1, 2, 3)[1:] + (4,)": "(2, 3, 4)",
    "f'{3:02d}-{1.5:.2f}-{\"x\"!r}'": "\"03-1.50-'x'\"",
    r"f'a\n{1}\t{{'": r"'a\n' + '1' + '\t{'",
    r"rf'a\n{1}'": r"'a' + '\\' + 'n1'",
    "'float' + str(8 * 2)": "'float16'",
    "'a,b'.split(',')[-1].upper()": "'B'",
    "math.ceil(math.log2(1000)) + math.gcd(12, 18)": "16",
    "int(3.9) + round(2.6) + abs(-2)": "8",
    "T.ceildiv(1000, 128)": "8",
    "tilelang.cdiv(1000, 128) + tilelang.next_power_of_2(100)": "136",
    "T.float16.bits // 8": "2",
    "'float16'.bits // 8": "2",
    "'float16' == T.float16": "True",
    "T.dtype('half') == T.float16": "True",
    "isinstance(3, int) and not isinstance('3', (int, float))": "True",
    "divmod(17, 5)": "(3, 2)",
    "dict(a=1, **{'b': 2})['b']": "2",
    "list(enumerate(reversed([5, 6])))": "[(0, 6), (1, 5)]",
    "any([0, 1]) and all([])": "True",
    "(lambda x, *rest, y=2: x + y + len(rest))(1, 8, 9)": "5",
    "(n := 4) + n": "8",
    "3 in [1, 2, 3] and 'b' not in {'a': 1}": "True",
    "1_000 + 0x10 + 1e3": "2016.0",
    "bool([]) is False": "True",
}


@pytest.mark.parametrize(("expression", "value"), STATIC.items(), ids=STATIC.keys())
def test_static_expressions(body: Callable[..., object], expression: str, value: str) -> None:
    body("B[bx, 0] = 0", factory=f"found = {expression}\nassert found == ({value}), f'{{found}}'", M=8)


def test_false_assertion_fails(refusal: Callable[..., str]) -> None:
    assert refusal("B[bx, 0] = 0", factory="assert 1 == 2, 'no'") == "F019 the assertion fails: no"


def test_what_an_assertion_asks_is_done_once(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    found = body(
        "assert store(B) == 3, 'no'",
        module="""
        def store(B):
            T.atomic_add(B[0, 0], 1.0)
            return 3
        """,
    )
    assert len(listing(found)) == 1, listing(found)


def test_helpers_run_to_completion(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    found = body(
        "B[bx, 0] = horner(A[bx, 0], [3, 2, 1])",
        module="""
        def horner(x, coefficients):
            total = 0
            for c in coefficients:
                total = total * x + c
            return total
        """,
    )
    assert listing(found) == ["B[bx, 0] = ((((((0 * A[bx, 0]) + 3) * A[bx, 0]) + 2) * A[bx, 0]) + 1)"]


def test_while_break_continue_of_helpers(body: Callable[..., object]) -> None:
    module = """
    def collatz(n):
        steps = 0
        while True:
            if n == 1:
                break
            steps += 1
            if n % 2 == 0:
                n //= 2
                continue
            n = 3 * n + 1
        else:
            return -1
        return steps
    """
    body("B[bx, 0] = 0", module=module, factory="assert collatz(6) == 8")


def test_static_if_leaves_one_branch(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = "if causal and block_M > 32:\n    B[bx, 0] = 1\nelif not causal:\n    B[bx, 0] = 2\nelse:\n    B[bx, 0] = 3"
    parameters = "M, N, block_M=64, causal=False"
    assert listing(body(text, parameters=parameters)) == ["B[bx, 0] = 2"]
    assert listing(body(text, parameters=parameters, causal=True)) == ["B[bx, 0] = 1"]
    assert listing(body(text, parameters=parameters, causal=True, block_M=16)) == ["B[bx, 0] = 3"]


def test_dynamic_if_keeps_both(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = "if bx > 0 and 0 <= bx < N:\n    B[bx, 0] = 1\nelif not bx == 3:\n    B[bx, 0] = 2"
    assert listing(body(text)) == [
        "if ((bx > 0) and ((0 <= bx) and (bx < N)))",
        "  B[bx, 0] = 1",
        "else",
        "  if (not (bx == 3))",
        "    B[bx, 0] = 2",
    ]


def test_conditional_expressions(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = "B[bx, 0] = 1.0 if block_M == 64 else A[bx, 0]\nB[bx, 1] = A[bx, 0] if bx > 0 else 0"
    assert listing(body(text)) == ["B[bx, 0] = 1.0", "B[bx, 1] = if_then_else((bx > 0), A[bx, 0], 0)"]


def test_static_condition_decides_and_or(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    assert listing(body("if block_M == 64 and bx > 0:\n    B[bx, 0] = 1")) == ["if (bx > 0)", "  B[bx, 0] = 1"]
    assert listing(body("if bx > 0 or block_M == 64:\n    B[bx, 0] = 1")) == ["B[bx, 0] = 1"]


def test_range_is_a_loop_of_the_program(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = "for i in range(2, N, 3):\n    B[bx, i] = 0\nfor i in T.unroll(4):\n    B[bx, i] = 1"
    assert listing(body(text)) == ["serial i in 2:N:3", "  B[bx, i] = 0", "unroll i in 0:4:1", "  B[bx, i] = 1"]


def test_formulas_are_kept_only_where_the_device_computes_the_same(
    body: Callable[..., object], listing: Callable[..., list[str]]
) -> None:
    text = "B[bx, block_M // 2 + 1] = A[bx, block_M**2] * (block_M / 3 * 3.0)\nB[bx, block_M * 10**8] = 0"
    assert listing(body(text)) == ["B[bx, ((block_M // 2) + 1)] = (A[bx, 4096] * 64.0)", "B[bx, 6400000000] = 0"]


def test_swap_reads_before_it_writes(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = 'pair = T.alloc_local((2,), "float32")\npair[0], pair[1] = pair[1], pair[0]'
    assert listing(body(text)) == [
        "let value: float32 = pair[0]",
        "pair[0] = pair[1]",
        "pair[1] = value",
    ]


def test_swap_of_mutable_scalars(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = 'a = T.alloc_var("int32", 0)\nb = T.alloc_var("int32", 1)\na, b = b, a + b'
    assert listing(body(text))[2:] == ["let value: int32 = (a + b)", "a = b", "b = value"]


def test_alloc_var(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = """
    total = T.alloc_var("float32", init=0)
    count: T.int32 = 1
    for k in T.serial(N):
        total += A[bx, k]
        count = count << 1
        count ^= 3
    before = total
    total = 0
    B[bx, 0] = before
    """
    assert listing(body('x = T.alloc_var("int32")')) == ["var x: int32 = 0"]
    assert listing(body(text)) == [
        "var total: float32 = 0",
        "var count: int32 = 1",
        "serial k in 0:N:1",
        "  total += A[bx, k]",
        "  count = (count << 1)",
        "  count = (count ^ 3)",
        "let before: float32 = total",
        "total = 0",
        "B[bx, 0] = before",
    ]


def test_macro_is_inlined_with_names_of_its_own(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    module = """
    @T.macro
    def scale(buffer, factor):
        for i in T.Parallel(64):
            twice = factor * 2
            buffer[i] *= twice
    """
    text = 'twice = T.alloc_fragment((64,), "float32")\nscale(twice, bx + 1)\nscale(twice, 3)'
    assert listing(body(text, module=module)) == [
        "let factor: int32 = (bx + 1)",
        "parallel i in 64",
        "  let twice_1: int32 = (factor * 2)",
        "  twice[i] *= twice_1",
        "parallel i in 64",
        "  twice[i] *= 6",
    ]


def test_scalar_functions(body: Callable[..., object], listing: Callable[..., list[str]]) -> None:
    text = """
    x = A[bx, 0]
    B[bx, 0] = T.exp2(x) + T.float32(bx) + T.cast(1, "float32")
    B[bx, 1] = T.clamp(x, -1.0, 1.0)
    B[bx, 2] = T.if_then_else(x > 0, x, -T.infinity("float32"))
    B[bx, T.floordiv(bx, 2)] = max(x, 0)
    """
    assert listing(body(text)) == [
        "let x: float32 = A[bx, 0]",
        "B[bx, 0] = ((exp2(x) + float32(bx)) + float32(1.0))",
        "B[bx, 1] = min(max(x, -1.0), 1.0)",
        "B[bx, 2] = if_then_else((x > 0), x, -infinity())",
        "B[bx, (bx // 2)] = max(x, 0)",
    ]


@pytest.mark.parametrize(
    ("text", "refused"),
    {
        "x = bx / 2": "F033 `/` of two integers is not allowed in a kernel",
        "x = bx % 0": "F014 division by zero",
        "x = A[bx, 0] & 1": "F014 `&` takes integers, not float32 and int32",
        "x = A + 1": "F006 the extent of `A` in an expression of tiles needs the value of `M`, which is left unbound",
        "if A:\n    pass": "F014 `A`, a tensor in global memory has no truth value",
        "return bx": "F031 `return` is inside T.Kernel, a loop or a branch",
        "for i in T.Parallel(4):\n    T.clear(A)": "F026 T.clear works on whole tiles; it cannot be inside T.Parallel",
        "if bx in (1, 2):\n    pass": "F007 this comparison must be known at transpile time: it depends on `bx`",
        "if (bx, 1) == (2, 1):\n    pass": "F007 this comparison must be known at transpile time: it depends on `bx`",
        "del bx\nA[bx, 0] = 1.0": "F009 `bx` is not defined",
        "class C: pass": "F012 `class` is not supported here",
        "T.use_swizzle(0)": "F023 the panel of T.use_swizzle must be at least 1, not 0",
    }.items(),
)
def test_refused(refusal: Callable[..., str], text: str, refused: str) -> None:
    assert refusal(text) == refused


CALLED = """
import tilelang
import tilelang.language as T

def inner(N, scale):
    tile = 2 * N

    @tilelang.jit(out_idx=[1])
    def make(threads):
        rows = tile // 2

        @T.prim_func
        def main(A: T.Tensor((rows,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(1, threads=threads) as bx:
                for i in T.Parallel(rows):
                    B[i] = A[i] * scale

        return main

    return make(64)

def outer(N):
    @T.prim_func
    def unused(A: T.Tensor((N,), "float32")):
        with T.Kernel(1) as bx:
            A[0] = 0.0

    return inner(N, 2.0)
"""


def test_a_factory_calls_what_makes_the_prim_func() -> None:
    """Its outputs are those that the jit function around the prim_func says; so they are by way of another function."""
    for name, bindings in (("outer", {}), ("inner", {"scale": 2.0})):
        (program,) = programs(None, CALLED, kernel=name, bindings={"N": 64, **bindings})
        assert (program.name, program.function, program.outputs) == (name, "main", (1,))
        assert program.launches[0].threads == 64
        assert {each.name for each in program.constants} >= {"rows"}


def test_a_kernel_that_others_call_is_found_by_its_name() -> None:
    assert kernel_names(CALLED) == ("outer",)
    with pytest.raises(Tile2CuError) as caught:
        programs(None, CALLED, kernel="make", bindings={"N": 64})
    assert caught.value.code == "T2C-F004"


ELEMENTWISE = """
import tilelang
import tilelang.language as T
import torch

def rows_of(*shapes):
    return torch.broadcast_shapes(*shapes)[0]

def elementwise(N, op):
    block = 32 * 4

    @tilelang.jit(out_idx=[1])
    def make(threads):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = op(A[bx * block + i])

        return main

    return make
"""


def test_functions_are_arguments(listing: Callable[..., list[str]]) -> None:
    """By -D, or by a function of another file that a kernel is named by."""
    text = "from lib import elementwise, rows_of\n\ndef scaled(c):\n"
    text += "    n = rows_of((1, 3), (256, 1), ())\n    return elementwise(n, lambda x: c * x)(64)\n"
    (one,) = programs(None, ELEMENTWISE, bindings={"N": 256, "op": "lambda x: 2.0 * x", "threads": 64})
    (other,) = programs(None, text, kernel="scaled", bindings={"c": 2.0}, read={"lib.py": ELEMENTWISE}.get)
    assert listing(one)[-1] == "  B[((bx * block) + i)] = (2.0 * A[((bx * block) + i)])"
    assert listing(other)[-1] == "  B[((bx * block) + i)] = (c * A[((bx * block) + i)])"
    assert (one.outputs, other.outputs) == ((1,), (1,))
    with pytest.raises(Tile2CuError) as caught:
        programs(None, text + "\ndef none(c):\n    return c\n", kernel="none", bindings={"c": 2})
    assert (caught.value.code, caught.value.message) == ("T2C-F032", "`none` returns the number 2, not a T.prim_func")


def test_shapes_that_do_not_go_together() -> None:
    text = ELEMENTWISE + "\ndef wrong():\n    return elementwise(rows_of((2,), (3,)), abs)(64)\n"
    with pytest.raises(Tile2CuError) as caught:
        programs(None, text, kernel="wrong")
    assert caught.value.message == "extents of 2 and 3 do not go together"
