"""The launcher and the kernels have the values of sizes that both need from one struct."""

import re
from pathlib import Path
from random import Random

import pytest

from tests.golden.source_text import Source, Values, value
from tile2cu.api import emit_text
from tile2cu.targets import SM80, SM90A

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

PERSISTENT = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def rounds(n, m, w, block=128, programs=7):
    @T.prim_func
    def body(X: T.Tensor((n, m), "float32"), W: T.Tensor((w,), "float32"), Y: T.Tensor((n, m), "float32")):
        with T.Kernel(T.ceildiv(n, 2) * T.ceildiv(m, block), threads=128) as index:
            rows = T.ceildiv(n, 2)
            columns = T.ceildiv(m, block)
            share = n // w
            row = index // columns * 2
            for i in T.Parallel(block):
                Y[row, index % columns * block + i] = X[row, index % columns * block + i] + share + rows
    return body
"""


def emitted(tmp_path: Path, source: str) -> str:
    path = tmp_path / "rounds.py"
    path.write_text(source, encoding="utf-8")
    return emit_text(path, kernel=None, target=SM80, bindings={})[0].files["rounds.cu"]


def test_two_values_that_the_grid_needs_are_members(tmp_path: Path) -> None:
    text = emitted(tmp_path, PERSISTENT)
    struct = text[text.index("struct Schedule {") : text.index("};", text.index("struct Schedule {"))]
    assert "  int n, m;\n" in struct
    assert "int rows = tl::ceildiv(n, 2);" in struct and "int columns = tl::ceildiv(m, block);" in struct
    assert text.count("const Schedule schedule{n, m};") == 2, "in the kernel and in the launcher"
    assert "const dim3 grid(schedule.rows * schedule.columns);" in text
    assert "// grid: (schedule.rows * schedule.columns)" in text


def test_a_value_that_divides_by_what_may_be_zero_stays_in_its_kernel(tmp_path: Path) -> None:
    """The launcher computes all members, for any sizes."""
    text = emitted(tmp_path, PERSISTENT)
    struct = text[text.index("struct Schedule {") : text.index("};", text.index("struct Schedule {"))]
    assert "share" not in struct and "const int share = " in text


def test_one_value_is_as_short_without_a_struct(tmp_path: Path) -> None:
    text = emitted(tmp_path, PERSISTENT.replace("T.ceildiv(n, 2) * T.ceildiv(m, block), ", "T.ceildiv(m, block), "))
    assert "Schedule" not in text and "const dim3 grid(tl::ceildiv(m, block));" in text


def test_a_users_own_name_is_not_the_structs(tmp_path: Path) -> None:
    text = emitted(tmp_path, PERSISTENT.replace("row = ", "schedule = ").replace("[row,", "[schedule,"))
    assert "const Schedule schedule{n, m};" in text and re.search(r"const int schedule_\d+ = ", text)


def test_the_hybrid_gemm_computes_its_schedule_once() -> None:
    (kernel,) = emit_text(EXAMPLES / "gemm_hybrid.py", kernel=None, target=SM90A, bindings={})
    text = kernel.files["gemm_hybrid.cu"]
    struct, rest = text.split("struct Schedule {")[1].split("};", 1)
    kernels = rest[: rest.index("// ---- host")]
    assert "parts_per_tile" in struct and "split_tiles" in struct
    assert not re.search(r"(parts_per_tile|split_tiles|k_tiles_per_part|tail_tiles) =", rest)
    assert "ceildiv(M," not in kernels and "ceildiv(K," not in kernels
    assert "const dim3 grid(schedule.split_tiles * strips);" in rest


@pytest.mark.parametrize("name", ["gemm_hybrid", "gemm_persistent", "gemm_batched"])
def test_tile_indices_past_the_end_are_ints(name: str) -> None:
    """Of sizes around the limit, those that the launcher accepts have no index of a wave's last tile that overflows."""
    text = (ROOT / f"emitted/cuda/sm_90a/{name}.cu").read_text(encoding="utf-8")
    source, random = Source.of(text), Random(3)
    constants = dict(source.kernels[0].constants)
    rows_of, columns_of, programs = (constants[each] for each in ("block_M", "block_N", "programs"))
    verdicts = set()
    for _ in range(2000):
        rows = random.randrange(1, 2**23)
        columns = max(1, (2**31 + random.randrange(-200, 200)) // rows)
        sizes = {"M": rows * rows_of, "N": columns * columns_of, "K": 64, "batch": 1}
        rejected = any(value(each, Values({**constants, **sizes}, {}, random)) for each in source.rejected)
        last = -(-rows * columns // programs) * programs - 1
        assert rejected or last < 2**31
        verdicts.add(rejected)
    assert verdicts == {True, False}


def test_a_loop_in_steps_ends_before_an_int_does(tmp_path: Path) -> None:
    source = PERSISTENT.replace("T.ceildiv(n, 2) * T.ceildiv(m, block), ", "programs, ").replace(
        "row = index // columns * 2",
        "for tile in T.serial(index, rows * columns, programs):\n              row = tile // columns * 2",
    )
    text = emitted(tmp_path, source.replace("            for i in", "              for i in"))
    assert "!tl::fits_int(int64_t(tl::ceildiv(n, 2)) * tl::ceildiv(m, block) + programs)" in text


COUNTED_IN_THE_KERNEL = """
import tilelang.language as T

@T.prim_func
def rounds(counts: T.Tensor((4,), "int32"), out: T.Tensor((4096,), "int32")):
    with T.Kernel(16, threads=32) as block:
        total = T.alloc_shared((1,), "int32")
        if T.get_thread_binding() == 0:
            total[0] = counts[0] + counts[1]
        T.sync_threads()
        for wave in T.serial(8):
            tile = wave * 16 + block
            if tile < total[0]:
                out[tile] = tile
"""


def test_the_launcher_does_not_check_a_number_that_the_kernel_counts(tmp_path: Path) -> None:
    """How many tiles there are is in shared memory: the launcher has no such tile."""
    text = emitted(tmp_path, COUNTED_IN_THE_KERNEL)
    assert "total" in text and "total" not in text[text.index("// ---- host") :]
