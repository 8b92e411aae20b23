"""A compiled kernel with TileLang's methods, on the kernel that tile2cu loads."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2cu.emitter import Resolved
from tile2cu.loading import load_resolved
from tile2cu.tilelang.options import Options
from tile2cu.tilelang.primfunc import PrimFunc
from tile2cu_runtime.kernel import Kernel

if TYPE_CHECKING:
    from tile2cu.tilelang.profiler import Profiler


class JITKernel:
    """A compiled kernel: called with its tensors, it returns the outputs that it allocated, as TileLang's does.

    `kernel` is tile2cu's own, which has `resources()`, `bench()`, `layouts` and the manifest. `latency`, `ref_latency`
    (milliseconds) and `config` are those of the tuner that chose it, if one did.
    """

    def __init__(self, resolved: tuple[Resolved, ...], options: Options, function: PrimFunc | None = None) -> None:
        self.kernel: Kernel = load_resolved(resolved, device=options.device, on_ignored="warn")
        self.prim_func = function
        self.pass_configs = options.pass_configs
        self.target = self.kernel.manifest.target
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: dict[str, Any] | None = None

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """Runs the kernel. Errors: those of tile2cu's kernels."""
        return self.kernel(*tensors, **named)

    def __getattr__(self, name: str) -> Any:
        """What tile2cu's own kernel has: layouts, resources, bench, manifest and so on."""
        if name.startswith("_") or name == "kernel":
            raise AttributeError(name)
        return getattr(self.kernel, name)

    @property
    def out_idx(self) -> list[int]:
        """The arguments that a call allocates and returns."""
        return list(self.kernel.manifest.outputs)

    @property
    def params(self) -> tuple[Any, ...]:
        """The arguments: name, dtype and shape of each."""
        return self.kernel.manifest.called

    @property
    def kernel_source(self) -> str:
        """The emitted source."""
        return self.get_kernel_source()

    @property
    def host_source(self) -> str:
        """The launcher's source."""
        return self.get_host_source()

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The emitted source: the kernels, and the launcher that a C function is."""
        return Path(self.kernel.folder, self.kernel.manifest.text_file).read_text(encoding="utf-8")

    def get_host_source(self) -> str:
        """The header with the C function's contract. The launcher itself is in the kernel's source."""
        return Path(self.kernel.folder, self.kernel.manifest.header_file).read_text(encoding="utf-8")

    def show_source(self, which: str = "kernel") -> None:
        """Prints the "kernel", the "host" part, or "both"."""
        parts = {"kernel": (self.kernel_source,), "host": (self.host_source,)}
        print("\n".join(parts.get(which, (self.host_source, self.kernel_source))))

    def print_source_code(self, which: str = "kernel", file: str | None = None) -> None:
        """Prints the source, or writes it to a file."""
        if file is None:
            self.show_source(which)
        else:
            Path(file).write_text(self.kernel_source, encoding="utf-8")

    def export_sources(self, kernel_path: str | None = None, host_path: str | None = None) -> None:
        """Writes the emitted source and its header to these files."""
        for path, text in ((kernel_path, self.kernel_source), (host_path, self.host_source)):
            if path is not None:
                Path(path).write_text(text, encoding="utf-8")

    def export_library(self, path: str) -> None:
        """Copies the built library. For other projects, `tile2cu vendor` writes sources instead."""
        shutil.copyfile(self.kernel.library, path)

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Times and checks the kernel on made-up tensors."""
        from tile2cu.tilelang.profiler import Profiler, TensorSupplyType

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def run_once(self, func: Any = None) -> None:
        """Calls the kernel, or `func`, once on made-up tensors."""
        self.get_profiler().run_once(func)

    @property
    def n_regs(self) -> int:
        """Registers per thread, of the launch that has most. Errors: CompileError without nvcc."""
        return max((each.registers for each in self._compiled()), default=0)

    @property
    def n_max_threads(self) -> int:
        """Threads per block, of the launch that has most."""
        return max(each.threads for each in self.kernel.manifest.launches)

    @property
    def n_spills(self) -> int:
        """Bytes of spill stores and loads per thread. Errors: CompileError without nvcc."""
        return sum(each.spill_store_bytes + each.spill_load_bytes for each in self._compiled())

    @property
    def resource_usage(self) -> dict[str, Any]:
        """Registers, spills, shared memory and occupancy, as `tile2cu resources --json` has them."""
        return self.kernel.resources().as_data()

    def _compiled(self) -> list[Any]:
        return [each.compiled for each in self.kernel.resources().kernels]

    def get_ptx(self) -> str:
        """nvcc's PTX. Errors: DeviceError for an AMD target, CompileError without nvcc."""
        from tile2cu_runtime import listings

        return listings.ptx(self.kernel.manifest, self.kernel.folder)

    def get_sass(self) -> str:
        """nvdisasm's SASS. Errors: DeviceError for an AMD target, CompileError without nvcc or nvdisasm."""
        from tile2cu_runtime import listings

        return listings.sass(self.kernel.manifest, self.kernel.folder)

    def show_ptx(self) -> None:
        """Prints nvcc's PTX."""
        print(self.get_ptx())

    def show_sass(self) -> None:
        """Prints nvdisasm's SASS."""
        print(self.get_sass())

    def export_ptx(self, path: str) -> None:
        """Writes nvcc's PTX to a file."""
        Path(path).write_text(self.get_ptx(), encoding="utf-8")

    def export_sass(self, path: str) -> None:
        """Writes nvdisasm's SASS to a file."""
        Path(path).write_text(self.get_sass(), encoding="utf-8")

    def update_tuner_result(self, latency: float, config: dict[str, Any], ref_latency: float | None) -> JITKernel:
        """Keeps what a tuner measured."""
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """What a tuner measured."""
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    def __repr__(self) -> str:
        return repr(self.kernel)

    def _repr_html_(self) -> str:
        return self.kernel._repr_html_()
