"""Settings built with nvcc, checked against the file's own, and timed on this machine's GPU."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tile2cu.core.choice import Candidate
from tile2cu.tuning.search import Identity
from tile2cu_runtime.bench import Machine, Timing, TorchMachine
from tile2cu_runtime.compilers import find_nvcc
from tile2cu_runtime.errors import Error
from tile2cu_runtime.kernel import Kernel
from tile2cu_runtime.timing import Call, Timer, interleaved
from tile2cu_runtime.trial import call_numbers, made_up_tensors, shape_of

if TYPE_CHECKING:
    from tile2cu.tuning.run import Task

# Of the norm of a result's difference from that of the file's own setting, over its norm. Settings add in another
# order: 16-bit results differ in the last place.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
_OTHER_TOLERANCE = 1e-4
_BUDGET_MS = 20.0  # of calls of one setting in a round


class Gpu:
    """A Device: torch's current GPU, with kernels that `load` builds."""

    def identity(self) -> Identity:
        return Identity(TorchMachine(Timing()).name, clocks(), tools())

    def measurer(self, task: "Task", default: Candidate) -> "OnGpu":
        from tile2cu.loading import load

        first = task.files[0]

        def kernel_of(candidate: Candidate) -> Kernel:
            given: dict[str, Any] = {**dict(task.bindings), **dict(candidate.setting)}
            return load(
                first.parent / candidate.file,
                task.kernel if candidate.file == default.file else None,
                target=task.target,
                style=task.style,
                device="hip" if task.target.startswith("hip") else "cuda",
                tiles="default",
                **given,
            )

        return OnGpu(kernel_of, default, dict(task.shape), builds=task.builds)


class OnGpu:
    """A Measurer. `kernel_of` builds the kernel of a setting; `default` is the one that results are compared with.

    So many `builds` run side by side.
    """

    def __init__(
        self,
        kernel_of: Callable[[Candidate], Kernel],
        default: Candidate,
        sizes: Mapping[str, int],
        machine: Machine | None = None,
        builds: int | None = None,
    ) -> None:
        machine = machine or TorchMachine(Timing())
        self.identity = Identity(machine.name, clocks(), tools())
        self._machine, self._kernel_of, self._default = machine, kernel_of, default
        self._builds = builds or os.cpu_count() or 1
        self._kernels: dict[Candidate, Kernel] = {default: kernel_of(default)}
        manifest = self._kernels[default].manifest
        self._numbers = call_numbers(manifest, {name: sizes[name] for name in self._open_sizes()}, {})
        self._tensors = self._made(manifest)
        self._kernels[default](**self._tensors, **self._numbers)
        self._expected = {spec.name: self._tensors[spec.name].clone() for spec in manifest.tensors if spec.written}

    def prepare(self, candidates: Sequence[Candidate]) -> Mapping[Candidate, str]:
        """As Measurer.prepare; builds run side by side."""
        rejected: dict[Candidate, str] = {}
        new = [each for each in candidates if each not in self._kernels]
        with ThreadPoolExecutor(max_workers=self._builds) as pool:
            built = [(each, pool.submit(self._kernel_of, each)) for each in new]
            for each, future in built:
                try:
                    self._kernels[each] = future.result()
                except Error as error:
                    rejected[each] = f"{error.code}: {error.message}"
        for each in new:
            if each in self._kernels and (why := self._wrong(self._kernels[each])):
                rejected[each] = why
                del self._kernels[each]
        return rejected

    def race(self, candidates: Sequence[Candidate], rounds: int) -> Mapping[Candidate, Sequence[float]]:
        """As Measurer.race: the L2 is cold, launches are hidden."""
        labels = {str(number): each for number, each in enumerate(candidates)}
        calls = {label: self._call(self._kernels[each]) for label, each in labels.items()}
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
