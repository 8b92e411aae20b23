"""Runs an emitted kernel on a case's data, on the CPU engine or on a GPU, and compares with NumPy."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cases import Arrays, Case, case_of
from prebuilt import NOT_SUPPORTED, WRONG_DEVICE, LaunchError, Prebuilt, Text

# Runs a text once on these arrays (float64, the outputs among them) and sizes; gives the outputs.
Runner = Callable[[Arrays, Mapping[str, int]], Arrays]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison. `error` is relative to the largest value expected; `wrong` says what is, or is empty.

    `refused`: the launcher does not take these sizes, as the text says (TL_NOT_SUPPORTED).
    """

    kernel: str
    sizes: dict[str, int]
    data: str
    error: float = 0.0
    sha256: str = ""
    wrong: str = ""
    refused: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kernel, json.dumps(self.sizes, sort_keys=True), self.data


def on_gpu(kernel: Prebuilt) -> Runner:
    """Launches on torch's GPU; outputs that are not added to are filled with NaN (or 77) before: holes show."""
    import torch

    def run(arrays: Arrays, sizes: Mapping[str, int]) -> Arrays:
        tensors = [
            torch.from_numpy(np.ascontiguousarray(array)).to(device="cuda", dtype=getattr(torch, spec["dtype"]))
            for spec, array in zip(kernel.tensors, arrays, strict=True)
        ]
        outputs = [tensors[position] for position in output_positions(kernel)]
        for output, position in zip(outputs, output_positions(kernel), strict=True):
            if kernel.tensors[position]["access"] == "write":
                output.fill_(float("nan") if output.dtype.is_floating_point else 77)
        kernel.bind(tensors, sizes, torch.cuda.current_stream().cuda_stream)()
        torch.cuda.synchronize()
        return [output.double().cpu().numpy() for output in outputs]

    return run


def on_cpu(text: Text, schedules: Sequence[str] = ("round-robin",)) -> Runner:
    """Runs on the CPU engine with all checks, once a schedule; a finding raises."""
    from tile2cu_runtime import load_kernel

    return _in_memory(text, load_kernel(text.path, device="cpu", check=True, schedules=schedules))


def on_ptx(text: Text) -> Runner:
    """Runs nvcc's PTX of the text on the PTX machine; a fault raises."""
    from tile2cu_runtime import load_kernel

    return _in_memory(text, load_kernel(text.path, device="ptx"))


def _in_memory(text: Text, kernel: Callable[..., object]) -> Runner:
    import ml_dtypes

    import tile2cu_runtime

    def run(arrays: Arrays, sizes: Mapping[str, int]) -> Arrays:
        dtypes = [getattr(ml_dtypes, spec["dtype"], spec["dtype"]) for spec in text.tensors]
        converted = [np.ascontiguousarray(a.astype(dtype)) for a, dtype in zip(arrays, dtypes, strict=True)]
        try:
            kernel(*converted, **sizes)
        except tile2cu_runtime.LaunchError as error:
            raise LaunchError(str(error), error.status) from error
        return [converted[position].astype(np.float64) for position in output_positions(text)]

    return run


def output_positions(kernel: Text) -> list[int]:
    """Which tensors the kernel writes."""
    return [index for index, tensor in enumerate(kernel.tensors) if tensor["access"] != "read"]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """float64 values after rounding to `dtype`, as float64 again."""
    if dtype.startswith(("bfloat16", "float8")):
        import torch

        return torch.from_numpy(values).to(getattr(torch, dtype)).double().numpy()
    return values.astype(dtype).astype(np.float64)


def compare(kernel: Text, case: Case, sizes: Mapping[str, int], data: str, runner: Runner) -> Row:
    """Runs the kernel once on this data and compares with the reference: to the bit for integers."""
    rng = np.random.default_rng(2026)
    positions = output_positions(kernel)
    shapes = kernel.shapes(sizes)
    dtypes = [tensor["dtype"] for tensor in kernel.tensors]
    read = [position for position in range(len(shapes)) if position not in positions]
    make = case.integers if data == "integers" else case.random
    assert make is not None
    made = make(rng, [shapes[position] for position in read])
    inputs = [rounded(array, dtypes[position]) for array, position in zip(made, read, strict=True)]
    # The kernels compute in float32 and round to the output's type last.
    results = case.reference(inputs, kernel.manifest["bindings"])
    expected = [
        rounded(rounded(result, "float32"), dtypes[position])
        for result, position in zip([results] if isinstance(results, np.ndarray) else results, positions, strict=True)
    ]
    arrays = dict(zip(read, inputs, strict=True)) | {position: np.zeros(shapes[position]) for position in positions}
    got = runner([arrays[position] for position in range(len(shapes))], sizes)
    error = max(_error(*pair) for pair in zip(got, expected, strict=True))
    limit = 0.0 if data == "integers" else case.tolerance
    bytes_ = b"".join(np.ascontiguousarray(array + 0.0).tobytes() for array in got)
    return Row(
        kernel=kernel.label,
        sizes=dict(sizes),
        data=data,
        error=error,
        sha256=hashlib.sha256(bytes_).hexdigest(),
        wrong="" if error <= limit else f"error {error:g} is over {limit:g}",
    )


def _error(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest value expected; NaN where the kernel gives it."""
    # An empty product or an empty tensor has no largest value.
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-30)
    return float(np.max(np.abs(got - expected), initial=0.0)) / scale


def sizes_to_try(kernel: Text, case: Case) -> Iterator[dict[str, int]]:
    """The case's sizes, as far as the text takes them at run time; each choice once."""
    seen = []
    for sizes in case.sizes:
        taken = {name: sizes[name] for name in kernel.sizes}
        if taken not in seen:
            seen.append(taken)
            yield taken


def rows_of(kernel: Text, runner: Runner, *, once: bool = False) -> Iterator[Row]:
    """All comparisons of one kernel, none where its text is for another device; an exception becomes a wrong row.

    With `once`, sizes for which a case has data with an exact result get no other.
    """
    case = case_of(kernel.manifest["kernel"])
    if case is None:
        yield Row(kernel=kernel.label, sizes={}, data="", wrong="cases.py has no case of this name")
        return
    kinds = ("random",) if not case.integers else ("integers",) if once else ("integers", "random")
    for sizes in sizes_to_try(kernel, case):
        for data in kinds:
            try:
                yield compare(kernel, case, sizes, data, runner)
            except LaunchError as error:
                if error.status == WRONG_DEVICE:
                    return
                refused = error.status == NOT_SUPPORTED
                yield Row(
                    kernel=kernel.label, sizes=sizes, data=data, wrong="" if refused else str(error), refused=refused
                )
            except Exception as error:
                traceback.print_exc()
                yield Row(kernel=kernel.label, sizes=sizes, data=data, wrong=f"{type(error).__name__}: {error}")
