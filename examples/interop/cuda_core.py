"""Emits relu(A @ B), compiles it by NVRTC and launches it by cuda.core: without nvcc, and without the C launcher.

pip install 'cuda-core[cu13]' torch; python examples/interop/cuda_core.py. Kernels for Hopper take tensor maps, which
the launcher in the emitted source encodes: those are called through it (docs/vendoring.md).
"""

import json
import sys
from pathlib import Path

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from cuda.pathfinder import locate_nvidia_header_directory

import tile2cu
from tile2cu_runtime.paths import headers_dir

FILE = Path(__file__).resolve().parents[1] / "gemm_relu.py"
# The instance for rows that start at multiples of 16 bytes: the launcher's choice where K and N are multiples of 8.
KERNEL = "gemm_relu_impl::gemm_relu_kernel<tl::Aligned<16>>"
TILE = 128  # block_M and block_N of the file


def emitted():
    """The emitted source, and its manifest."""
    files = tile2cu.emit(FILE, target="cuda:sm_80")["gemm_relu"].files
    return files["gemm_relu.cu"], json.loads(files["gemm_relu.json"])


def compiled(source: str, arch: str) -> ObjectCode:
    """The kernel as a cubin. No GPU is needed."""
    found = [locate_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    options = ProgramOptions(
        std="c++17",
        arch=arch,
        device_as_default_execution_space=True,
        include_path=[str(headers_dir()), *(str(each.abs_path) for each in found if each is not None)],
    )
    return Program(source, "c++", options=options).compile("cubin", name_expressions=(KERNEL,))


def launch_config(manifest, m: int, n: int) -> LaunchConfig:
    """The launch that the manifest states: blocks along N and M, threads, bytes of shared memory."""
    stated = manifest["launch"]
    assert stated["grid"] == ["tl::ceildiv(N, block_N)", "tl::ceildiv(M, block_M)"]
    return LaunchConfig(grid=(-(-n // TILE), -(-m // TILE)), block=stated["threads"], shmem_size=stated["shared_bytes"])


class TorchStream:
    """torch's current stream, by the protocol of cuda.core."""

    def __cuda_stream__(self) -> tuple[int, int]:
        import torch

        return 0, torch.cuda.current_stream().cuda_stream


def main() -> int:
    import torch

    device = Device()
    device.set_current()
    source, manifest = emitted()
    kernel = compiled(source, f"sm_{device.arch}").get_kernel(KERNEL)
    m, n, k = 1000, 512, 256
    a, b = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    pointers = (each.data_ptr() for each in (a, b, c))
    sizes = map(np.int32, (m, n, k))  # the kernel's type of sizes; Python's integers are pointers
    launch(device.create_stream(TorchStream()), launch_config(manifest, m, n), kernel, *pointers, *sizes)
    torch.testing.assert_close(c, torch.relu(a @ b), atol=2e-2, rtol=2e-2)
    print(f"equal to torch on {device.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
