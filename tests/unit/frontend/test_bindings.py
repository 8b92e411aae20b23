"""Where the values of parameters come from: -D, defaults, a call in the file, or the tensors at run time."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Role, Var
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import kernel_names, programs

FACTORY = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=-1)
def scale(M, N, block_M, block_N=32, dtype="float16"):
    \"\"\"B = 2 * A.\"\"\"
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N)) as (bx, by):
            tile = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(A[bx * block_M, by * block_N], tile)
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] *= 2
            T.copy(tile, B[bx * block_M, by * block_N])
    return main
"""
EAGER = """
from tilelang import jit
from tilelang import language as T

@jit
def scale(A, factor: T.float32, block: int = 256):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    B = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, block), N) as (bx, by):
        for i in T.Parallel(block):
            B[bx * block + i, by] = A[bx * block + i, by] * factor
    return B
"""


def constants(program: Program) -> dict[str, tuple[object, str]]:
    return {each.name: (each.value, each.origin) for each in program.constants}


def test_open_sizes_stay_open(trace: Callable[..., Program]) -> None:
    program = trace(FACTORY, block_M=64)
    assert [size.name for size in program.sizes] == ["M", "N"]
    assert constants(program) == {"block_M": (64, "-D"), "block_N": (32, "default")}
    assert (program.name, program.function, program.doc, program.outputs) == ("scale", "main", "B = 2 * A.", (1,))


def test_bound_sizes_are_constants(trace: Callable[..., Program]) -> None:
    program = trace(FACTORY, block_M=64, M=1024, block_N=16, dtype="float32")
    assert [size.name for size in program.sizes] == ["N"]
    assert constants(program) == {"M": (1024, "-D"), "block_M": (64, "-D"), "block_N": (16, "-D")}
    assert [param.dtype.name for param in program.params] == ["float32", "float32"]


@pytest.mark.parametrize("asked", ["isinstance(M, int)", "isinstance(M, (int, float))"])
def test_a_file_may_ask_whether_it_knows_a_size(asked: str, trace: Callable[..., Program]) -> None:
    source = FACTORY.replace("block_M,", "block_M=None,", 1).replace(
        "    @T.prim_func",
        f"    if block_M is None:\n        block_M = 16 if {asked} and M < 1000 else 64\n    @T.prim_func",
    )
    program = trace(source + "\nif __name__ == '__main__':\n    scale(8, 8)")
    assert [size.name for size in program.sizes] == ["M", "N"]
    assert constants(program)["block_M"][0] == 64
    assert constants(trace(source, M=512))["block_M"][0] == 16
    assert constants(trace(source, M=4096))["block_M"][0] == 64


def test_a_file_that_refuses_an_open_size_gets_its_own_call_s(trace: Callable[..., Program]) -> None:
    source = FACTORY.replace("    @T.prim_func", "    assert isinstance(M, int)\n    @T.prim_func")
    program = trace(source + "\nif __name__ == '__main__':\n    scale(8, 16, 64)")
    assert (constants(program)["M"][0], [size.name for size in program.sizes]) == (8, ["N"])
    with pytest.raises(Tile2CuError) as error:
        trace(source, block_M=64)
    assert error.value.code == "T2C-F019"


def test_other_functions_defaults_say_nothing_of_a_default_none(trace: Callable[..., Program]) -> None:
    source = FACTORY.replace("block_M,", "block_M=None,", 1).replace(
        "    @T.prim_func", "    if block_M is None:\n        block_M = 16\n    @T.prim_func"
    )
    program = trace(source + "\ndef reference(block_M=128):\n    return block_M")
    assert constants(program)["block_M"][0] == 16


def test_what_an_open_size_is_beside_a_number_needs_its_value(trace: Callable[..., Program]) -> None:
    with pytest.raises(Tile2CuError, match=r"isinstance\(\) needs the value of `M`"):
        asks = "    assert not isinstance(M, (int, str))\n    @T.prim_func"
        trace(FACTORY.replace("    @T.prim_func", asks), block_M=64)


@pytest.mark.parametrize(
    "host",
    [
        "kernel = scale(4096, 4096, 64)",
        "kernel = scale(4096, N=4096, block_M=64)",
        "if __name__ == '__main__':\n    block = 2 * 32\n    kernel = scale(4096, 4096, block)",
        "def main(block=64):\n    return scale(1, 2, block)\n\nif __name__ == '__main__':\n    main()",
        "import torch\nfor size in [64, 128]:\n    torch.randn(size)\n    print(scale(size, size, size))",
        "import sys\nif len(sys.argv) > 1:\n    n = int(sys.argv[1])\n    scale(n, n)\nelse:\n    scale(8, 8, 64)",
    ],
)
def test_needed_sizes_come_from_a_call(trace: Callable[..., Program], host: str) -> None:
    program = trace(FACTORY + host + "\n")
    value, origin = constants(program)["block_M"]
    assert value == 64
    assert origin.startswith("call at test.py:")
    assert [size.name for size in program.sizes] == ["M", "N"]  # not needed, so not taken from the call


def test_option_wins_over_call_and_default(trace: Callable[..., Program]) -> None:
    program = trace(FACTORY + "kernel = scale(4096, 4096, 64, block_N=8)\n", block_M=16, block_N=4)
    assert constants(program) == {"block_M": (16, "-D"), "block_N": (4, "-D")}


def test_unknown_option(trace: Callable[..., Program]) -> None:
    with pytest.raises(Tile2CuError) as caught:
        trace(FACTORY, block_M=64, blockN=8)
    assert (caught.value.code, caught.value.help) == ("T2C-F005", "did you mean `block_N`?")


ASKS_THE_LIBRARY = (
    FACTORY.replace(
        "@tilelang.jit",
        "import inspect\nWIDE = len(inspect.signature(T.copy).parameters) > 5\nROWS = 2 if WIDE else 1\n@tilelang.jit",
    )
    .replace("block_M, block_N=32", "block_M=16, block_N=32")
    .replace("block_M, block_N), dtype)\n", "block_M * ROWS, block_N), dtype)\n")
)


def test_option_for_a_global_name_that_only_running_the_file_would_give(trace: Callable[..., Program]) -> None:
    program = trace(ASKS_THE_LIBRARY, WIDE=True)
    assert program.launches[0].tiles[0].static_shape == (32, 32)
    with pytest.raises(Tile2CuError) as caught:
        trace(ASKS_THE_LIBRARY)
    assert caught.value.code == "T2C-F008" and "-D ROWS=VALUE" in caught.value.render()


def test_option_for_a_global_name_that_the_file_states(trace: Callable[..., Program]) -> None:
    with pytest.raises(Tile2CuError, match="no parameter or size has this name"):
        trace(FACTORY.replace("@tilelang.jit", "WIDE = 1\n@tilelang.jit"), block_M=16, WIDE=2)


def test_tensors_cannot_be_bound(trace: Callable[..., Program]) -> None:
    with pytest.raises(Tile2CuError) as caught:
        trace(FACTORY, block_M=64, A=3)
    assert caught.value.code == "T2C-F005"


def test_eager(trace: Callable[..., Program]) -> None:
    program = trace(EAGER)
    assert [param.name for param in program.params] == ["A", "factor", "B"]
    assert isinstance(program.params[0], Buffer)
    assert isinstance(program.params[1], Var) and program.params[1].role is Role.SCALAR
    assert program.outputs == (2,)
    assert [size.name for size in program.sizes] == ["M", "N"]
    assert constants(trace(EAGER, N=7)) == {"N": (7, "-D"), "block": (256, "default")}


def test_a_tensor_without_an_annotation_is_told_what_it_lacks(trace: Callable[..., Program]) -> None:
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit
def add(A):
    C = T.empty(A.shape, "float32")
    with T.Kernel(1) as bx:
        C[0] = A[0]
    return C
"""
    with pytest.raises(Tile2CuError) as caught:
        trace(text, A=256)
    assert caught.value.code == "T2C-F013" and "`A: T.Tensor(shape, dtype)`" in caught.value.help


def test_arguments_of_other_decorators_are_not_read(trace: Callable[..., Program]) -> None:
    tuned = "import itertools\n@tilelang.autotune(configs=[c for c in itertools.product([1], [2])])\n@tilelang.jit("
    options = "pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: open('x')}, "
    text = FACTORY.replace("@tilelang.jit(", tuned + options)
    assert trace(text, block_M=64).outputs == (1,)


def test_factory_of_factories(trace: Callable[..., Program]) -> None:
    text = """
    import tilelang.language as T

    def outer(M):
        def inner(block=64):
            @T.prim_func
            def main(A: T.Tensor((M,), "float32")):
                with T.Kernel(T.ceildiv(M, block)) as bx:
                    for i in T.Parallel(block):
                        A[bx * block + i] = 0
            return main
        return inner
    """
    program = trace(text, block=32)
    assert (program.name, program.function, program.outputs) == ("outer", "main", ())
    assert constants(program) == {"block": (32, "-D")}


def test_prim_func_at_module_level(trace: Callable[..., Program]) -> None:
    text = """
    import tilelang.language as T
    n = T.dynamic("n")

    @T.prim_func
    def double(A: T.Tensor((n,), T.float32), alpha: T.float32):
        with T.Kernel(T.ceildiv(n, 128)) as bx:
            for i in T.Parallel(128):
                A[bx * 128 + i] *= alpha
    """
    program = trace(text)
    assert (program.name, [size.name for size in program.sizes]) == ("double", ["n"])


def test_several_kernels_in_the_order_of_the_file() -> None:
    text = EAGER.replace("scale", "first") + FACTORY.replace("scale", "second")
    assert kernel_names(text) == ("first", "second")
    found = programs(Path("two.py"), text, kernel=None, bindings={"block_M": 8, "block": 64})
    assert [program.name for program in found] == ["first", "second"]
    (second,) = programs(Path("two.py"), text, kernel="second", bindings={"block_M": 8})
    assert second.name == "second"


def test_helper_that_makes_the_prim_func_is_no_kernel() -> None:
    text = (
        FACTORY.replace("@tilelang.jit(out_idx=-1)\n", "")
        + "\n@tilelang.jit\ndef made(M):\n    return scale(M, M, 8)\n"
    )
    assert kernel_names(text) == ("made",)


def test_nothing_of_the_file_is_executed(trace: Callable[..., Program], tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    program = trace(f"open({str(mark)!r}, 'w').write('x')\nraise SystemExit\n" + FACTORY, block_M=8)
    assert program.name == "scale"
    assert not mark.exists()


def test_order_of_options_decides_nothing() -> None:
    (first,) = programs(Path("a.py"), FACTORY, kernel=None, bindings={"block_M": 64, "block_N": 8})
    (second,) = programs(Path("a.py"), FACTORY, kernel=None, bindings={"block_N": 8, "block_M": 64})
    assert replace(first, bindings=()) == replace(second, bindings=())  # bindings keep the order that was typed


OF_CONFIG = """
from dataclasses import dataclass
import torch
import tilelang
import tilelang.language as T

@dataclass(frozen=True)
class Shape:
    block: tuple[int, int]

@dataclass(frozen=True)
class Config(Shape):
    torch_dtype: torch.dtype = torch.float16
    factor: int = 2

    @property
    def dtype(self):
        return T.dtype(self.torch_dtype)

def doubled(rows, cols):
    return rows * 2, cols

@tilelang.jit
def scale(config: Config, threads=128):
    rows, cols = config.block
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M, cols), config.dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            for i, j in T.Parallel(rows, cols):
                A[bx * rows + i, j] *= config.factor
    return main
"""


@dataclass(frozen=True)
class Config:
    """Its repr() is the call that makes it."""

    block: tuple[int, int]
    factor: int = 2


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ("Config((32, 64))", "float16"),
        ("Config(block=doubled(16, 64), torch_dtype=torch.bfloat16)", "bfloat16"),
        (Config(block=(32, 64)), "float16"),
    ],
)
def test_a_value_may_be_python_of_the_file(trace: Callable[..., Program], value: object, dtype: str) -> None:
    program = trace(OF_CONFIG, config=value)
    (tensor,) = (param for param in program.params if isinstance(param, Buffer))
    (loop,) = program.launches[0].body
    assert (tensor.dtype.name, [each.value for each in loop.extents]) == (dtype, [32, 64])  # type: ignore[attr-defined]
    assert program.bindings == (("config", value if isinstance(value, str) else repr(value)),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Config(blok=(1, 2))", "-D config:1: error[T2C-F017]: `Config` has no field `blok`"),
        ("Config()", "-D config:1: error[T2C-F017]: `Config` needs a value for its field `block`"),
        ("Confit((1, 2))", "-D config:1: error[T2C-F009]: `Confit` is not defined"),
        ("torch.nonesuch(1)", "-D config:1: error[T2C-F008]: `torch.nonesuch(1)` is known only by running the file"),
    ],
)
def test_wrong_python_is_named_as_what_it_is(trace: Callable[..., Program], value: str, message: str) -> None:
    with pytest.raises(Tile2CuError) as caught:
        trace(OF_CONFIG, config=value)
    error = caught.value
    assert error.span is not None
    assert f"{error.span.file}:{error.span.line}: error[{error.code}]: {error.message}" == message


def test_the_tuners_module_has_the_decorator_that_older_files_take_from_there(trace: Callable[..., Program]) -> None:
    text = FACTORY.replace("import tilelang\n", "from tilelang.autotuner import *\n").replace("tilelang.jit(", "jit(")
    assert trace(text, block_M=64).outputs == (1,)
