"""Names that C, the runtimes, the launcher or the self-test have: each is a tensor's, a size's, a tile's, a constant's.

All by g++ for the CPU engine, the self-test too, and at night in other styles by nvcc and clang; that a kernel cannot
be called so is T2C-E033.
"""

import subprocess
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.emitter import Emitted
from tile2cu.targets import find
from tile2cu_runtime import hip
from tile2cu_runtime.compile import Build, precompiled_headers
from tile2cu_runtime.compilers import cutlass_include, find_gxx

HEADERS = Path(__file__).resolve().parents[2] / "headers"
KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def scaled({size}, {constant}=64):
    @T.prim_func
    def main({first}: T.Tensor(({size}, {constant}), "float16"), {second}: T.Tensor(({size}, {constant}), "float32")):
        with T.Kernel(T.ceildiv({size}, 32), threads=128) as {block}:
            {tile} = T.alloc_shared((32, {constant}), "float16")
            T.copy({first}[{block} * 32, 0], {tile})
            for {loop}, j in T.Parallel(32, {constant}):
                {second}[{block} * 32 + {loop}, j] = T.sqrt(T.max({tile}[{loop}, j], 0.0))
    return main
"""
ROLES = ("size", "constant", "first", "second", "block", "tile", "loop")
NAMES = (
    "tl_status TL_OK size_t int64_t cudaStream_t cudaSuccess CUtensorMap",
    "uint32_t float16 scaled launch printf tensors_on_device TL_CURRENT_DEVICE",
    "bfloat16 int4 TensorsOnDevice Tensors index Array sqrt",
    "scaled_supports time float8_e4m3fn tolerance reference maximum value",
)


# Macros, functions of C's library, and what a style's kernels take from its library.
NAMES_OF_STYLES = {
    "cute": (
        "NULL EOF NAN INFINITY M_PI printf malloc",
        "Tensor Layout copy size Shape Int tile",
        "make_tensor gemm tuple Array smem threadIdx blockIdx",
        "TL_DEVICE _Complex errno stdin abs exit min",
    ),
    "ck": (
        "NULL EOF NAN INFINITY M_PI printf malloc",
        "tensor_view load_tile sequence number index_t tuple array",
        "ck_tile half_t bf16_t hipStream_t get_block_1d_id tile_window float8",
        "TL_DEVICE _Complex errno stdin abs exit min",
    ),
}


def emitted_with(words: list[str], target: str, options: EmitOptions) -> Emitted:
    """The kernel whose ROLES have these names."""
    text = KERNEL.format(**dict(zip(ROLES, words, strict=True)))
    given = {"kernel": None, "target": find(target), "bindings": {}, "options": options}
    (emitted,) = emit_text(Path("odd.py"), text=text, **given)  # type: ignore[arg-type]
    return emitted


@pytest.mark.nightly
@pytest.mark.needs("cutlass", "nvcc")
@pytest.mark.parametrize("rotation", [0, 3])
@pytest.mark.parametrize("names", NAMES_OF_STYLES["cute"])
def test_names_compile_in_the_style_cute(names: str, rotation: int, nvcc: str, tmp_path: Path) -> None:
    words = names.split()
    emitted = emitted_with(words[rotation:] + words[:rotation], "cuda:sm_90a", EmitOptions(style="cute"))
    for file, content in emitted.files.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    include = [f"-I{HEADERS}", f"-I{cutlass_include()}"]
    flags = ["-std=c++17", "--expt-relaxed-constexpr", "-gencode=arch=compute_90a,code=sm_90a", *include, "-ptx"]
    done = subprocess.run([nvcc, *flags, "-o", "/dev/null", tmp_path / "scaled.cu"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.needs("ck")
@pytest.mark.parametrize("rotation", [0, 3])
@pytest.mark.parametrize("names", NAMES_OF_STYLES["ck"])
def test_names_compile_in_the_style_ck(names: str, rotation: int, tmp_path: Path) -> None:
    words = names.split()
    emitted = emitted_with(words[rotation:] + words[:rotation], "hip:gfx942", EmitOptions(style="ck"))
    for file, content in emitted.files.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    needs = ("composable_kernel",)
    command, *_ = hip.code_object_commands(str(tmp_path / "scaled.hip"), architecture="gfx942", needs=needs)
    done = subprocess.run([*command, "-fsyntax-only"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("rotation", range(0, len(ROLES), 2))
@pytest.mark.parametrize("names", NAMES)
def test_names_that_others_have_compile(names: str, rotation: int, gxx: str, tmp_path: Path) -> None:
    words = names.split()
    emitted = emitted_with(words[rotation:] + words[:rotation], "cuda:sm_90a", EmitOptions(with_test=True))
    for file, content in emitted.files.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    command = (gxx, "-x", "c++", "-std=c++17", "-Wno-unknown-pragmas", "-I", str(HEADERS))
    headers = precompiled_headers(Build(compile=command, link=(), identity=find_gxx().version))
    for file in (*tmp_path.glob("*.cu"), *tmp_path.glob("*.cpp")):
        # The self-test does not begin with the headers: it reads them as they are.
        read = headers if file.suffix == ".cu" else ()
        command_of_file = [*command, *read, "-fsyntax-only", str(file)]
        done = subprocess.run(command_of_file, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
