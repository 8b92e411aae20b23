"""A torch model with a tile2cu kernel, exported and compiled ahead of time by AOTInductor.

python examples/interop/aot_inductor.py [FOLDER] [cpu|cuda] [LIBRARY] writes model.pt2, loads it, and compares it with
eager torch, on the CPU engine or on a GPU. A process that loads the package needs the operator: that of `register()`
in Python, or that of LIBRARY, which C++ loads, too. `tile2cu gemm_relu.py --shim torch` writes its source
(docs/vendoring.md).

Both ran on the CPU with torch 2.13, and on an H100 with torch 2.11. Inductor links the model by the C++ compiler of
$CXX: one that links libstdc++ statically gives a library that ends in a segmentation fault in std::regex when it is
loaded, for each model on a GPU, with or without an operator of ours.
"""

import sys
from pathlib import Path

import torch

import tile2cu

KERNEL = Path(__file__).resolve().parents[1] / "gemm_relu.py"


def register(device: str):
    """torch.ops.examples.gemm_relu: relu(A @ B) of float16, with its gradient."""

    def backward(ctx, gradient):
        a, b, c = ctx.saved_tensors  # the arguments, then the result
        gradient = gradient * (c > 0)
        return gradient @ b.T, a.T @ gradient

    target = "auto" if device == "cuda" else "cuda:sm_80"
    kernel = tile2cu.load(KERNEL, target=target, device=device)
    return kernel.as_torch_op("examples::gemm_relu", backward=backward)


def load_operator(library: str):
    """relu(A @ B) by the operator of a library, whose last argument is the result."""
    torch.ops.load_library(library)

    @torch.library.register_fake("tile2cu::gemm_relu")
    def shapes(a, b, c) -> None:
        return None

    def gemm_relu(a, b):
        result = a.new_empty(a.shape[0], b.shape[1])
        torch.ops.tile2cu.gemm_relu(a, b, result)
        return result

    return gemm_relu


class Mlp(torch.nn.Module):
    """relu(x @ up) @ down, whose first half is the kernel's."""

    def __init__(self, gemm_relu, width: int, hidden: int) -> None:
        super().__init__()
        self.gemm_relu = gemm_relu
        self.up = torch.nn.Parameter(torch.randn(width, hidden, dtype=torch.float16) / width**0.5)
        self.down = torch.nn.Parameter(torch.randn(hidden, width, dtype=torch.float16) / hidden**0.5)

    def forward(self, x):
        return self.gemm_relu(x, self.up) @ self.down


def compile_ahead(folder: Path, device: str, library: str | None = None) -> tuple[Path, Mlp]:
    """Writes model.pt2 for any number of rows, and gives the model, too."""
    model = Mlp(load_operator(library) if library else register(device), 64, 128).to(device)
    rows = torch.export.Dim("rows", min=2, max=4096)
    x = torch.randn(32, 64, dtype=torch.float16, device=device)
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
    return Path(package), model


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    package, model = compile_ahead(folder, device, sys.argv[3] if len(sys.argv) > 3 else None)
    loaded = torch._inductor.aoti_load_package(str(package))
    for rows in (32, 77):
        x = torch.randn(rows, 64, dtype=torch.float16, device=device)
        expected = torch.relu(x.float() @ model.up.float()) @ model.down.float()
        torch.testing.assert_close(loaded(x).float(), expected, atol=2e-2, rtol=2e-2)
    print(f"{package}: equal to eager torch on {device}")


if __name__ == "__main__":
    main()
