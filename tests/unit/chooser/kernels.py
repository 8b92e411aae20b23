"""Kernels whose parameters decide more than tiles, or less."""

from functools import cache
from pathlib import Path

from tile2cu.choosing import Tunable
from tile2cu.targets import find

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
HEAD = "import tilelang\nimport tilelang.language as T\n\n\n"
GEMM = """@tilelang.jit(out_idx=[-1])
def gemm(M, N, K, {parameters}):
    @T.prim_func
    def gemm_kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor({shape}, "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, 64), "float16")
            B_shared = T.alloc_shared((64, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * block_M, k * 64], A_shared)
                T.copy(B[k * 64, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            {epilogue}
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_kernel
"""


def gemm(parameters: str, epilogue: str = "pass", shape: str = "(M, N)") -> str:
    """A GEMM with these parameters, statements before its store, and shape of C."""
    indented = epilogue.replace("\n", "\n            ")
    return HEAD + GEMM.format(parameters=parameters, epilogue=indented, shape=shape)


def tunable_text(text: str, target: str = "cuda:sm_90a", **bindings: object) -> Tunable:
    """A kernel in a text."""
    path = Path("kernel.py")
    return Tunable(path=path, text=text, kernel=None, target=find(target), bindings=tuple(bindings.items()))


@cache
def example(name: str, target: str = "cuda:sm_90a", **bindings: object) -> Tunable:
    """A kernel of examples/: one object for all tests, as it keeps what it has decided of each setting."""
    path = EXAMPLES / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    return Tunable(path=path, text=text, kernel=None, target=find(target), bindings=tuple(bindings.items()))
