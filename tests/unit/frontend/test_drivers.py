"""The driver of a file gives a kernel its arguments: torch tensors, command lines, classes, tuners, files beside."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import driver_arguments, programs
from tile2cu.targets import GFX90A, GFX942, GFX950, SM80, SM89, SM90A, SM100A, Target

FACTORY = """\
import argparse
import functools
import itertools
import torch
import tilelang
import tilelang.language as T
from dataclasses import dataclass
from somewhere import *


@tilelang.jit(out_idx=[-1])
def scale(M, N, block_M, causal, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            tile = T.alloc_shared((block_M, 32), dtype)
            T.copy(A[bx * block_M, 0], tile)
            if causal:
                T.clear(tile)
            T.copy(tile, B[bx * block_M, 0])
    return main


"""
DRIVERS = {
    "command line": """
parser = argparse.ArgumentParser()
parser.add_argument("--block-m", type=int, default="64")
parser.add_argument("--causal", action="store_true")
args, _ = parser.parse_known_args()
scale(1, 2, args.block_m, causal=args.causal)
""",
    "shape of a tensor": """
def run(x):
    rows, columns = x.shape
    return scale(rows, columns, x.view(-1, 8).size(0), False)(x)

run(torch.randn(8, 64, dtype=torch.float16, device="cuda").half())
""",
    "shapes that torch's functions make": """
places = torch.randperm(8, device="cuda")
x = torch.linspace(0, 1, steps=8, dtype=torch.float16)[places].view(1, 8, 1).expand(2, -1, 64).clone()
ends = torch.cat([torch.tensor([0]), torch.arange(7)[places[:1]], torch.tensor([8])], 0).cuda().sort()[0]
scale(len(ends), x.shape[1], x.shape[2] if x.shape[0] + len(ends) == 5 else 1, False)(x)
""",
    "autograd": """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, block):
        ctx.save_for_backward(x)
        ctx.block = block
        return unknown(x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return scale(x.shape[0], x.shape[1], ctx.block, False)(x)

apply = Scale.apply
apply(torch.empty((4, 4)), 64)
""",
    "class of constants": """
@dataclass
class Config:
    block: int = 32
    causal: bool = False

    @property
    def rows(self):
        return self.block * 2

config = Config(block=32)
scale(1, 2, config.rows, config.causal)
""",
    "object with methods": """
class Runner:
    def __init__(self, block):
        self.block = block

    def run(self):
        return scale(1, 2, self.block, causal=False)

Runner(64).run()
""",
    "forward of a module that nothing makes": """
class Scale(torch.nn.Module):
    def __init__(self, width, rows=32):
        super().__init__()
        self.tile = rows * 2
        self.is_causal = rows > 1000

    @staticmethod
    def other(x):
        return x

    def forward(self, x):
        return scale(x.shape[0], x.shape[1], self.tile, self.is_causal)(x)
""",
    "dict of options": """
config = {"block_M": 64, "causal": False, unknown.KEY: 3}
scale(1, 2, **{name: config[name] for name in ("block_M", "causal")})
""",
    "function of functions": """
build = functools.partial(scale, 1, 2, causal=False)
build(block_M=64)
""",
    "loop that collects": """
blocks = []
for wide, block in itertools.product([True, False], [64, 128]):
    if not wide:
        blocks.append(block)
scale(1, 2, blocks[0], False)
""",
    "compile": "scale.compile(M=1, N=2, block_M=64, causal=False)",
    "test that nothing calls": "def test_it(block=64):\n    kernel = scale(1, 2, block, False)\n",
    "unknown branch": """
if unknown() > 3:
    block = 64
    scale(1, 2, block, False)
""",
    "branch that is not taken": """
fast = True
if fast:
    other(1)
else:
    scale(1, 2, 64, False)
""",
    "branch that is taken, and one that is not": """
if len(torch.empty(3)) == 3:
    scale(1, 2, 64, False)
else:
    scale(1, 2, 32, True)
""",
    "shape of an unknown tensor": """
def main(rows=8, block=64):
    x = normalised(torch.empty(rows, block))
    rows, block = x.shape
    scale(rows, 2, block, False)

main()
""",
    "after a long function of something else": """
def reference(x):
    for a in range(64):
        for b in range(64):
            for c in range(64):
                x[a, b, c] = a * b * c
    return x

if __name__ == "__main__":
    reference(torch.empty(64, 64, 64))
    scale(1, 2, 64, False)
""",
}


def constant(program: Program, name: str) -> object:
    return next(each.value for each in program.constants if each.name == name)


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())
def test_arguments_come_from_the_driver(trace: Callable[..., Program], driver: str) -> None:
    program = trace(FACTORY + driver)
    assert constant(program, "block_M") == 64
    assert [size.name for size in program.sizes] == ["M", "N"]
    assert len(program.launches[0].body) == 2  # not causal


TUNED = """
import itertools
import tilelang
import tilelang.language as T

def configs():
    names = ("block", "threads")
    return [dict(zip(names, values)) for values in itertools.product([64, 128], [256, 128])]

@tilelang.autotune(configs={configs}, warmup=3)
@tilelang.jit
def kernel(A, B, block=None, threads=128):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
        tile = T.alloc_fragment((block,), "float32")
        T.copy(A[bx * block], tile)
        T.copy(tile, B[bx * block])
"""


NAMESAKES = {
    "call of `other` at <text>:": "@tilelang.jit\ndef other(block_M): pass\n\nother(64)\nscale(*unknown(), False)\n",
    "option at <text>:": "argparse.ArgumentParser().add_argument('--block_M', default=64)\nscale(*unknown(), False)\n",
    "default of `main` at <text>:": "def test(block_M=32): pass\ndef main(block_M=64): pass\nunknown(scale)\n",
    "variable at <text>:": "if __name__ == '__main__':\n    block_M = 64\n    unknown(scale)\n",
}


@pytest.mark.parametrize("origin", NAMESAKES)
def test_a_parameter_of_the_same_name_is_the_last_resort(origin: str) -> None:
    text = FACTORY.replace("causal, dtype", "causal=False, dtype") + NAMESAKES[origin]
    (program,) = programs(None, text, kernel="scale")
    found = next(each for each in program.constants if each.name == "block_M")
    assert (found.value, found.origin[: len(origin)]) == (64, origin)


def test_a_type_of_the_same_name_is_one_too() -> None:
    other = "@tilelang.jit\ndef other(dtype, block_M): pass\n\nother(T.float16, 64)\n"
    text = FACTORY.replace('causal, dtype="float32"', "dtype, causal=False") + other
    (program,) = programs(None, text, kernel="scale")
    assert str(program.params[0].dtype) == "float16"


GLOBAL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def kernel(M, block=32):
    @T.prim_func
    def main(A: T.Tensor((M, H), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=H) as bx:
            tile = T.alloc_fragment((block, H), "float32")
            T.copy(A[bx * block, 0], tile)
    return main

{driver}
"""


def test_a_global_name_may_be_bound_where_the_file_runs_as_a_program() -> None:
    (program,) = programs(None, GLOBAL.format(driver='if __name__ == "__main__":\n    H = 64\n    kernel(1024)\n'))
    (found,) = (each for each in program.constants if each.name == "H")
    assert (found.value, found.origin) == (64, "variable at <text>:15")
    assert program.launches[0].threads == 64


def test_a_global_name_that_nothing_binds_is_not_defined() -> None:
    with pytest.raises(Tile2CuError, match="`H` is not defined"):
        programs(None, GLOBAL.format(driver="kernel(1024)\n"))


def test_a_count_that_no_shape_gives_is_an_argument(trace: Callable[..., Program]) -> None:
    program = trace("""
    import tilelang
    import tilelang.language as T

    @tilelang.jit
    def kernel(batch, longest, turns, block=64):
        @T.prim_func
        def main(lengths: T.Tensor((batch + 1,), "int32")):
            with T.Kernel(T.ceildiv(longest, block), batch) as (bx, by):
                for turn in T.serial(turns):
                    lengths[by] = turn
        return main
    """)
    assert [size.name for size in program.sizes] == ["batch", "longest", "turns"]


@pytest.mark.parametrize("configs", ["configs()", "configs", "[{'block': 64}]"])
def test_the_first_configuration_of_a_tuner(trace: Callable[..., Program], configs: str) -> None:
    program = trace(TUNED.format(configs=configs))
    assert constant(program, "block") == 64
    assert program.launches[0].threads == 128  # the function's own default stays


def test_the_driver_comes_before_the_tuner(trace: Callable[..., Program]) -> None:
    assert constant(trace(TUNED.format(configs="configs") + "\nkernel(1, 2, block=32)\n"), "block") == 32


def test_sizes_come_from_the_tensors_of_an_eager_call(trace: Callable[..., Program]) -> None:
    program = trace("""
    import torch
    import tilelang
    import tilelang.language as T

    @tilelang.jit
    def kernel(A):
        M, D = T.const("M, D")
        A: T.Tensor((M, D), "float32")
        with T.Kernel(M) as bx:
            row = T.alloc_fragment((D,), "float32")
            T.copy(A[bx, 0], row)

    kernel(torch.zeros(128, 96))
    """)
    assert constant(program, "D") == 96
    assert [size.name for size in program.sizes] == ["M"]


def test_outputs_of_tilelang_compile(trace: Callable[..., Program]) -> None:
    program = trace(
        FACTORY.replace("@tilelang.jit(out_idx=[-1])\n", "")
        + "func = scale(1, 2, 64, False)\nkernel = tilelang.compile(func, out_idx=[1])\n"
    )
    assert program.outputs == (1,)


def test_the_device_is_the_one_that_is_asked_for() -> None:
    text = FACTORY + "major, minor = torch.cuda.get_device_capability()\nscale(1, 2, major * 16 + minor, False)\n"
    for target, block in ((SM80, 128), (SM90A, 144)):
        (program,) = programs(None, text, target=target)
        assert constant(program, "block_M") == block


def test_a_device_has_the_shared_memory_of_its_kind() -> None:
    text = FACTORY + (
        "prop = torch.cuda.get_device_properties(0)\n"
        "from tilelang.contrib import nvcc\n"
        "major, minor = nvcc.parse_compute_version(nvcc.get_target_compute_version(None))\n"
        "scale(1, 2, prop.shared_memory_per_multiprocessor // 1024 + major, False)\n"
    )
    for target, block in ((SM80, 172), (SM89, 108), (SM90A, 237), (SM100A, 238), (GFX942, 73), (GFX950, 169)):
        (program,) = programs(None, text, target=target)
        assert constant(program, "block_M") == block


QUERIES = """\
import tilelang.language as T
from tilelang import tvm
from tilelang.utils.target import determine_target

def pick(target):
    if target is None:
        return 1
    rows = 2
    try:
        from tilelang.rocm.target import target_is_gfx950
        from tilelang.cuda.target import target_is_hopper

        rows = 3 if target_is_gfx950(target) else 4 if target_is_hopper(target) else 5
    except (ImportError, AttributeError):
        pass
    else:
        rows += 10
    finally:
        rows += 100
    return rows + (1000 if target.kind.name == "hip" else 0)

@T.prim_func
def main(A: T.Tensor((pick(tvm.target.Target("hip -mcpu=gfx950")), 8), "float32")):
    with T.Kernel(1 if determine_target("auto") == "cuda" else 2):
        T.clear(A)
"""


@pytest.mark.parametrize(
    ("target", "rows", "grid"), [(SM80, 115, 1), (SM90A, 114, 1), (GFX950, 1113, 2), (GFX90A, 1115, 2)]
)
def test_a_target_is_the_one_that_the_text_is_for(target: Target, rows: int, grid: int) -> None:
    """Whichever the file names: text and answers belong together."""
    found = programs(None, QUERIES, kernel=None, bindings={}, target=target)
    (program,) = found
    (tensor,) = (param for param in program.params if isinstance(param, Buffer))
    assert static_value(tensor.shape[0]) == rows
    assert static_value(program.launches[0].grid[0]) == grid


BESIDE = {
    "sizes.py": "from .inner.deep import BLOCK\nimport torch\n\nclass Sizes:\n    block = BLOCK\n",
    "inner/__init__.py": "from .deep import *\nfrom ..sizes import Sizes as Again\n",
    "inner/deep.py": "BLOCK = 64\n\ndef double(x):\n    return 2 * x\n",
}


@pytest.mark.parametrize(
    "text",
    [
        "from sizes import Sizes\nscale(1, 2, Sizes.block, False)",
        "from .sizes import BLOCK as size\nscale(1, 2, size, False)",
        "import inner\nscale(1, 2, inner.double(32), False)",
        "import inner.deep as deep\nscale(1, 2, deep.BLOCK, False)",
        "from inner import deep, missing\nscale(1, 2, deep.BLOCK, False)",
        "from inner import Again\nscale(1, 2, Again.block, False)",
        "from inner.deep import *\nscale(1, 2, double(32), False)",
    ],
)
def test_files_beside(text: str) -> None:
    (program,) = programs(Path("kernel.py"), FACTORY + text + "\n", read=BESIDE.get)
    assert constant(program, "block_M") == 64


def test_absolute_imports_of_the_files_own_package(tmp_path: Path) -> None:
    """They start where the folder with the package's name lies, a relative one never does."""
    files = {
        "lib/__init__.py": "raise RuntimeError\n",
        "lib/sizes.py": "from lib.inner.deep import BLOCK\n",
        "lib/inner/deep.py": "class Tiles:\n  @property\n  def size(self):\n    return 64\nBLOCK = Tiles().size\n",
        "lib/inner/kernel.py": FACTORY + "from lib.sizes import BLOCK\nscale(1, 2, BLOCK, False)\n",
        "lib/inner/relative.py": FACTORY + "from .lib.sizes import BLOCK\nscale(1, 2, BLOCK, False)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (program,) = programs(tmp_path / "lib/inner/kernel.py", files["lib/inner/kernel.py"])
    assert constant(program, "block_M") == 64
    with pytest.raises(Tile2CuError) as caught:
        programs(tmp_path / "lib/inner/relative.py", files["lib/inner/relative.py"])
    assert caught.value.code == "T2C-F006"


@pytest.mark.parametrize("call", ['os.environ.get("BLOCK", "64")', 'os.getenv("BLOCK", 64)'])
def test_variables_of_the_environment_have_their_defaults(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCK", "32")
    (program,) = programs(None, f"import os\n{FACTORY}scale(1, 2, int({call}), False)\n")
    assert constant(program, "block_M") == 64


def test_files_beside_are_read_only_when_needed() -> None:
    asked: list[str] = []

    def read(name: str) -> str | None:
        asked.append(name)
        return None

    programs(None, FACTORY + "from helpers import check\n", bindings={"block_M": 64, "causal": 0}, read=read)
    assert asked == []


def test_a_helper_beside_may_be_wrong() -> None:
    text = FACTORY + "from helpers import block\nscale(1, 2, block(3), False)\n"
    for helper in ("def block(n:\n", "import helpers\nfrom helpers import block\n", "def block(n): return 1 // 0\n"):
        with pytest.raises(Tile2CuError) as caught:
            programs(None, text, read={"helpers.py": helper}.get)
        assert caught.value.code == "T2C-F006"


def test_places_in_files_beside() -> None:
    text = FACTORY.replace("T.copy(A[bx * block_M, 0], tile)", "load(A, tile)") + "from lib import load\n"
    helper = "import tilelang.language as T\n\ndef load(A, tile):\n    T.copy(A[0, 0, 0], tile)\n"
    with pytest.raises(Tile2CuError) as caught:
        programs(Path("kernel.py"), text, bindings={"block_M": 64, "causal": 0}, read={"lib.py": helper}.get)
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == ("lib.py", 4)


def test_a_driver_without_end_leaves_sizes_open(trace: Callable[..., Program]) -> None:
    for driver in ("while True: pass", "f(0)", "x = [0] * 10 ** 9", "x = [f for f in range(10 ** 6)]"):
        with pytest.raises(Tile2CuError) as caught:
            trace(FACTORY + "def f(n):\n    return f(n + 1)\n\nif __name__ == '__main__':\n    " + driver + "\n")
        assert caught.value.code == "T2C-F006"


SEVERAL = """
import tilelang.language as T

def pair(N):
    @T.prim_func
    def left(A: T.Tensor((N,), "float32")):
        with T.Kernel(N) as bx:
            A[bx] = 1.0

    @T.prim_func
    def right(A: T.Tensor((N,), "float32")):
        with T.Kernel(N) as bx:
            A[bx] = 2.0

    return left, right
"""


def test_a_factory_that_returns_several_kernels() -> None:
    found = programs(None, SEVERAL)
    assert [(each.name, each.function) for each in found] == [("pair_left", "left"), ("pair_right", "right")]
    assert [each.name for each in programs(None, SEVERAL, kernel="pair_right")] == ["pair_right"]
    with pytest.raises(Tile2CuError) as caught:
        programs(None, SEVERAL, kernel="pair_middle")
    assert caught.value.code == "T2C-F004"


@pytest.mark.parametrize("result", ["tuner.run(warmup=3)", "tuner, configs, kernel", "kernel"])
def test_a_tuner_of_a_factory_inside(trace: Callable[..., Program], result: str) -> None:
    program = trace(f"""
    import tilelang.language as T
    from tilelang.autotuner import AutoTuner

    def best(N):
        def kernel(block=None, threads=None):
            @T.prim_func
            def main(A: T.Tensor((N,), "float32")):
                with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
                    A[bx] = 1.0
            return main

        configs = [dict(block=block, threads=64) for block in (32, 128)]
        tuner = AutoTuner.from_kernel(kernel=kernel, configs=configs).set_compile_args(out_idx=[-1])
        return {result}
    """)
    assert constant(program, "block") == 32
    assert program.launches[0].threads == 64


def test_a_driver_may_be_asked_for_what_has_defaults() -> None:
    text = FACTORY.replace("causal, dtype", "causal=False, dtype") + "scale(1, 2, 64, causal=True, dtype=torch.half)\n"
    assert driver_arguments(None, text, "scale") == {"causal": True, "dtype": "float16"}


@pytest.mark.parametrize(
    "opaque",
    [
        "def helper(x=undefined): return x",
        "class Helper(undefined.Base):\n    size: int = undefined\n    def run(self, x=undefined): return x",
        "OPTIONS = {undefined.KEY: True, torch.float8: [undefined(3)]}",
        "for name, value in undefined.items():\n    OPTIONS = name",
        "with undefined() as context:\n    OPTIONS = context.value",
        "try:\n    import nothing\nexcept ImportError:\n    nothing = None",
        "@undefined.decorate(3)\ndef other(x):\n    raise ValueError(x)",
        "TABLE = torch.tensor(undefined) @ torch.eye(3)",
        "del undefined\nglobal_name: undefined = lambda: undefined",
    ],
)
def test_what_only_running_the_file_would_give_harms_no_kernel(trace: Callable[..., Program], opaque: str) -> None:
    text = FACTORY.replace("from somewhere import *\n", "") + opaque + "\nscale(1, 2, 64, False)\n"
    assert constant(trace(text), "block_M") == 64
