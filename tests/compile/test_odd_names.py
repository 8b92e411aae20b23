"""Names that C, the runtimes, the launcher or the self-test have: each is a tensor's, a size's, a tile's, a constant's.

All by g++ for the CPU engine, the self-test too; that a kernel cannot be called so is T2C-E033.
"""

import subprocess
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find

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


@pytest.mark.parametrize("rotation", range(0, len(ROLES), 2))
@pytest.mark.parametrize("names", NAMES)
def test_names_that_others_have_compile(names: str, rotation: int, gxx: str, tmp_path: Path) -> None:
    words = names.split()
    text = KERNEL.format(**dict(zip(ROLES, words[rotation:] + words[:rotation], strict=True)))
    (emitted,) = emit_text(
        Path("odd.py"),
        text=text,
        kernel=None,
        target=find("cuda:sm_90a"),
        bindings={},
        options=EmitOptions(with_test=True),
    )
    for file, content in emitted.files.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    for file in (*tmp_path.glob("*.cu"), *tmp_path.glob("*.cpp")):
        command = [gxx, "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wno-unknown-pragmas", f"-I{HEADERS}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
