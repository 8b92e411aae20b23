"""Runs an emitted kernel on a case's data, on the CPU engine or on a GPU, and compares with NumPy."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cases import Arrays, Case, case_of
from prebuilt import Prebuilt, Text

# Runs a text once on these arrays (float64, the output among them) and sizes; gives the output.
Runner = Callable[[Arrays, Mapping[str, int]], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison. `error` is relative to the largest value expected; `wrong` says what is, or is empty."""

    kernel: str
    sizes: dict[str, int]
    data: str
    error: float = 0.0
    sha256: str = ""
    wrong: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kernel, json.dumps(self.sizes, sort_keys=True), self.data


def on_gpu(kernel: Prebuilt) -> Runner:
    """Launches on torch's GPU; the output is filled with NaN (or 77) before, so that holes show."""
    import torch

    def run(arrays: Arrays, sizes: Mapping[str, int]) -> np.ndarray:
        tensors = [
            torch.from_numpy(np.ascontiguousarray(array)).to(device="cuda", dtype=getattr(torch, spec["dtype"]))
            for spec, array in zip(kernel.tensors, arrays, strict=True)
        ]
        output = tensors[output_position(kernel)]
        output.fill_(float("nan") if output.dtype.is_floating_point else 77)
        kernel.bind(tensors, sizes, torch.cuda.current_stream().cuda_stream)()
        torch.cuda.synchronize()
        return output.double().cpu().numpy()

    return run


def on_cpu(text: Text, schedules: Sequence[str] = ("round-robin",)) -> Runner:
    """Runs on the CPU engine with all checks, once a schedule; a finding raises."""
    import ml_dtypes

    from tile2cu_runtime import load_kernel

    kernel = load_kernel(text.path, device="cpu", check=True, schedules=schedules)

    def run(arrays: Arrays, sizes: Mapping[str, int]) -> np.ndarray:
        dtypes = [getattr(ml_dtypes, spec["dtype"], spec["dtype"]) for spec in text.tensors]
        converted = [np.ascontiguousarray(a.astype(dtype)) for a, dtype in zip(arrays, dtypes, strict=True)]
        kernel(*converted, **sizes)
        return converted[output_position(text)].astype(np.float64)

    return run


def output_position(kernel: Text) -> int:
    """Which tensor the kernel writes. These cases have one."""
    written = [index for index, tensor in enumerate(kernel.tensors) if tensor["access"] != "read"]
    if len(written) != 1:
        raise ValueError(f"{kernel.label} writes {len(written)} tensors; this script knows kernels that write one")
    return written[0]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """float64 values after rounding to `dtype`, as float64 again."""
    if dtype == "bfloat16":
        import torch

        return torch.from_numpy(values).to(torch.bfloat16).double().numpy()
    return values.astype(dtype).astype(np.float64)


def compare(kernel: Text, case: Case, sizes: Mapping[str, int], data: str, runner: Runner) -> Row:
    """Runs the kernel once on this data and compares with the reference: to the bit for integers."""
    rng = np.random.default_rng(2026)
    position = output_position(kernel)
    shapes = kernel.shapes(sizes)
    dtypes = [tensor["dtype"] for tensor in kernel.tensors]
    input_shapes = shapes[:position] + shapes[position + 1 :]
    make = case.integers if data == "integers" else lambda r, s: [r.standard_normal(shape) for shape in s]
    inputs = [rounded(array, dtypes[0]) for array in make(rng, input_shapes)]
    # The kernels compute in float32 and round to the output's type last.
    result = rounded(case.reference(inputs, kernel.manifest["bindings"]), "float32")
    expected = rounded(result, dtypes[position])
    arrays = [*inputs[:position], np.zeros(shapes[position]), *inputs[position:]]
    got = runner(arrays, sizes)
    # An empty product or an empty tensor has no largest value.
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-30)
    error = float(np.max(np.abs(got - expected), initial=0.0)) / scale
    limit = 0.0 if data == "integers" else case.tolerance
    return Row(
        kernel=kernel.label,
        sizes=dict(sizes),
        data=data,
        error=error,
        sha256=hashlib.sha256(np.ascontiguousarray(got + 0.0).tobytes()).hexdigest(),
        wrong="" if error <= limit else f"error {error:g} is over {limit:g}",
    )


def sizes_to_try(kernel: Text, case: Case) -> Iterator[dict[str, int]]:
    """The case's sizes, as far as the text takes them at run time; each choice once."""
    seen = []
    for sizes in case.sizes:
        taken = {name: sizes[name] for name in kernel.sizes}
        if taken not in seen:
            seen.append(taken)
            yield taken


def rows_of(kernel: Text, runner: Runner) -> Iterator[Row]:
    """All comparisons of one kernel; an exception becomes a wrong row."""
    case = case_of(kernel.manifest["kernel"])
    if case is None:
        yield Row(kernel=kernel.label, sizes={}, data="", wrong="cases.py has no case of this name")
        return
    for sizes in sizes_to_try(kernel, case):
        for data in ("integers", "random"):
            try:
                yield compare(kernel, case, sizes, data, runner)
            except Exception as error:
                traceback.print_exc()
                yield Row(kernel=kernel.label, sizes=sizes, data=data, wrong=f"{type(error).__name__}: {error}")
