"""A torch model with a tile2cu kernel, exported and compiled ahead of time by AOTInductor.

python examples/interop/aot_inductor.py [FOLDER] [cpu|cuda] writes model.pt2, loads it, and compares with eager torch:
on the CPU engine, or on a GPU. A process that loads the package needs the operator: `register()`, or from C++ the
library of `tile2cu gemm_relu.py --shim torch` (docs/vendoring.md).

torch 2.13 runs it on the CPU. On an H200, torch 2.11 ended in a segmentation fault, where torch.compile with the same
operator ran; later versions were not tried there.
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


class Mlp(torch.nn.Module):
    """relu(x @ up) @ down, whose first half is the kernel's."""

    def __init__(self, gemm_relu, width: int, hidden: int) -> None:
        super().__init__()
        self.gemm_relu = gemm_relu
        self.up = torch.nn.Parameter(torch.randn(width, hidden, dtype=torch.float16) / width**0.5)
        self.down = torch.nn.Parameter(torch.randn(hidden, width, dtype=torch.float16) / hidden**0.5)

    def forward(self, x):
        return self.gemm_relu(x, self.up) @ self.down


def compile_ahead(folder: Path, device: str) -> tuple[Path, Mlp]:
    """Writes model.pt2 for any number of rows, and gives the model, too."""
    model = Mlp(register(device), 64, 128).to(device)
    rows = torch.export.Dim("rows", min=2, max=4096)
    x = torch.randn(32, 64, dtype=torch.float16, device=device)
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
    return Path(package), model


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    package, model = compile_ahead(folder, device)
    loaded = torch._inductor.aoti_load_package(str(package))
    for rows in (32, 77):
        x = torch.randn(rows, 64, dtype=torch.float16, device=device)
        expected = torch.relu(x.float() @ model.up.float()) @ model.down.float()
        torch.testing.assert_close(loaded(x).float(), expected, atol=2e-2, rtol=2e-2)
    print(f"{package}: equal to eager torch on {device}")


if __name__ == "__main__":
    main()
