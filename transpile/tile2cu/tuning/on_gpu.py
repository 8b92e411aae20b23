"""Settings built with nvcc, checked against the file's own, and timed on this machine's GPU."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tile2cu.core.choice import Setting
from tile2cu_runtime.bench import Machine, Timing, TorchMachine
from tile2cu_runtime.compilers import find_nvcc
from tile2cu_runtime.errors import Error
from tile2cu_runtime.kernel import Kernel
from tile2cu_runtime.timing import Call, Timer, interleaved
from tile2cu_runtime.trial import call_numbers, made_up_tensors, shape_of

# Of the norm of a result's difference from that of the file's own setting, over its norm. Settings add in another
# order: 16-bit results differ in the last place.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
_OTHER_TOLERANCE = 1e-4
_BUDGET_MS = 20.0  # of calls of one setting in a round


class OnGpu:
    """A Measurer. `kernel_of` builds the kernel of a setting; `default` is the one that results are compared with."""

    def __init__(
        self,
        kernel_of: Callable[[Mapping[str, int]], Kernel],
        default: Setting,
        sizes: Mapping[str, int],
        machine: Machine | None = None,
    ) -> None:
        machine = machine or TorchMachine(Timing())
        self.card, self.clocks, self.tools = machine.name, clocks(), tools()
        self._machine, self._kernel_of, self._default = machine, kernel_of, default
        self._kernels: dict[Setting, Kernel] = {}
        self._kernels[default] = kernel_of(dict(default))
        manifest = self._kernels[default].manifest
        self._numbers = call_numbers(manifest, {name: sizes[name] for name in self._open_sizes()}, {})
        self._tensors = self._made(manifest)
        self._kernels[default](**self._tensors, **self._numbers)
        self._expected = {spec.name: self._tensors[spec.name].clone() for spec in manifest.tensors if spec.written}

    def prepare(self, settings: Sequence[Setting]) -> Mapping[Setting, str]:
        """As Measurer.prepare; builds run side by side."""
        rejected: dict[Setting, str] = {}
        new = [setting for setting in settings if setting not in self._kernels]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            built = [(setting, pool.submit(self._kernel_of, dict(setting))) for setting in new]
            for setting, future in built:
                try:
                    self._kernels[setting] = future.result()
                except Error as error:
                    rejected[setting] = f"{error.code}: {error.message}"
        for setting in new:
            if setting in self._kernels and (why := self._wrong(self._kernels[setting])):
                rejected[setting] = why
                del self._kernels[setting]
        return rejected

    def race(self, settings: Sequence[Setting], rounds: int) -> Mapping[Setting, Sequence[float]]:
        """As Measurer.race: the L2 is cold, launches are hidden."""
        labels = {str(number): setting for number, setting in enumerate(settings)}
        calls = {label: self._call(self._kernels[setting]) for label, setting in labels.items()}
        times = interleaved(calls, _ShortTimer(self._machine.gpu), rounds)
        return {labels[label]: [1e3 * ms for ms in each] for label, each in times.items()}

    def _open_sizes(self) -> list[str]:
        return [size.name for size in self._kernels[self._default].manifest.sizes]

    def _made(self, manifest: Any) -> dict[str, Any]:
        import numpy as np

        from tile2cu_runtime.tensors import numpy_dtype

        arrays = made_up_tensors(manifest, self._numbers, 0)
        for spec in manifest.tensors:
            if spec.name not in arrays:
                arrays[spec.name] = np.zeros(shape_of(spec, self._numbers), numpy_dtype(spec.dtype))
        return {spec.name: self._machine.tensor(spec, arrays[spec.name]) for spec in manifest.tensors}

    def _call(self, kernel: Kernel) -> Call:
        return lambda: kernel(**self._tensors, **self._numbers)

    def _wrong(self, kernel: Kernel) -> str:
        """Why a kernel's results are not those of the file's own setting."""
        for name in self._expected:
            self._tensors[name].fill_(0)
        try:
            self._call(kernel)()
        except Error as error:
            return f"{error.code}: {error.message}"
        for spec in kernel.manifest.tensors:
            if spec.written:
                found = self._machine.difference(self._tensors[spec.name], self._expected[spec.name])
                if found is None or not found < TOLERANCE.get(spec.dtype, _OTHER_TOLERANCE):
                    return f"its `{spec.name}` differs from the file's own setting's by {found} of its norm"
        return ""


class _ShortTimer(Timer):
    """A timer that spends less on a setting in a round, of which there are more."""

    def median_ms(self, call: Call, budget_ms: float = _BUDGET_MS) -> float:
        return super().median_ms(call, budget_ms)


def clocks() -> str:
    """The GPU's limits as nvidia-smi gives them: the clock of its SMs and its power; empty without nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm,power.limit", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def tools() -> str:
    """What builds the kernels: the version of tile2cu and of nvcc."""
    from tile2cu.version import VERSION

    try:
        done = subprocess.run([str(find_nvcc().path), "--version"], capture_output=True, text=True, check=False)
    except Error:
        return f"tile2cu {VERSION}"
    release = next((line.strip() for line in done.stdout.splitlines() if "release" in line), "")
    return f"tile2cu {VERSION}, nvcc {release.rpartition('release ')[2]}"
