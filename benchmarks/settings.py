"""Attention, GEMV, norms and dequantising GEMMs in many settings of their tiles: the default beside the best.

    python benchmarks/settings.py time RESULTS.csv [SUITE ...]  # on a machine with a GPU, torch and nvcc
    python benchmarks/settings.py table RESULTS.csv             # the default's speed over the best one's

Each setting is emitted, compiled, compared with the reference, and timed alternately with the others of its workload by
the protocol of docs/measuring.md. A setting that the rules or the launcher reject is left out.
"""

from __future__ import annotations

import csv
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = "cuda:sm_90a"
BUDGET_MS, ROUNDS = 30.0, int(os.environ.get("ROUNDS", "2"))
# (batch, heads, sequence) for each head dimension, causal and full: 24 workloads
ATTENTIONS = {
    64: ((8, 32, 512), (4, 32, 1024), (1, 32, 4096), (2, 32, 8192)),
    128: ((8, 32, 512), (4, 32, 1024), (1, 32, 4096), (2, 32, 8192)),
    256: ((8, 16, 512), (4, 16, 1024), (1, 16, 4096), (2, 16, 8192)),
}
NORMS = ((8192, 256), (8192, 1024), (8192, 4096), (8192, 8192), (65536, 256), (65536, 1024), (65536, 4096))
PRODUCTS = ("M0", "M1", "M4", "1024", "4096")
Setting = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A kernel of examples/, with bindings of which each has its own workloads, and the settings that are tried.

    `columns`: the binding that has the columns of a row, where a block has whole rows in registers.
    """

    file: str
    kernel: str
    bindings: tuple[Setting, ...]
    settings: tuple[Setting, ...]
    columns: str = ""


def grid(**values: tuple[Any, ...]) -> tuple[Setting, ...]:
    """All combinations."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


def joined(*groups: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """All combinations of settings, one of each group."""
    return tuple({name: value for each in parts for name, value in each.items()} for parts in product(*groups))


WARPGROUPS = tuple({"block_M": 64 * n, "threads": 128 * n} for n in (1, 2, 3))
ACCUMULATORS = 256  # registers of a thread: more spill, and take nvcc minutes
TILES = tuple(
    each
    for each in grid(block_M=(64, 128, 256), block_N=(64, 128, 256), block_K=(64, 128), threads=(128, 256))
    if each["block_M"] * each["block_N"] < ACCUMULATORS * each["threads"]
)
SUITES = {
    "attention": Suite(
        file="attention",
        kernel="attention",
        bindings=joined(grid(dim=(64, 128, 256)), grid(is_causal=(True, False))),
        settings=joined(WARPGROUPS, grid(block_N=(64, 80, 96, 112, 128, 144, 160, 176), num_stages=(2, 3))),
    ),
    "gemv": Suite(
        file="gemv", kernel="gemv", bindings=({},), settings=grid(block_N=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256))
    ),
    "rmsnorm": Suite(
        file="rmsnorm",
        kernel="rmsnorm",
        bindings=grid(dim=tuple(sorted({dim for _, dim in NORMS}))),
        settings=grid(block_M=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256, 512)),
        columns="dim",
    ),
    "layernorm": Suite(
        file="layernorm",
        kernel="layernorm",
        bindings=grid(dim=tuple(sorted({dim for _, dim in NORMS}))),
        settings=grid(block_M=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256, 512)),
        columns="dim",
    ),
    "row_softmax": Suite(
        file="row_softmax",
        kernel="row_softmax",
        bindings=grid(N=(1000, 8192)),
        settings=grid(block_M=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256, 512)),
        columns="N",
    ),
    "dequant_gemm": Suite(
        file="dequant",
        kernel="dequant_gemm",
        bindings=grid(weights=("fp4",)),
        settings=joined(TILES, grid(num_stages=(2, 3, 4))),
    ),
    "linear_fp4": Suite(
        file="linear_int4_prefill",
        kernel="linear_int4_prefill",
        bindings=grid(weights=("fp4",)),
        settings=joined(TILES, grid(num_stages=(2, 3, 4))),
    ),
    "dequant_gemv": Suite(
        file="dequant",
        kernel="dequant_gemv",
        bindings=grid(group=(32, None), zero_dtype=("float16",)),
        settings=grid(block_N=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256)),
    ),
}
SCHEMA = ("suite", "workload", "setting", "us", "error")
DEFAULT, LABEL = "default", "setting.txt"


def label(setting: Setting) -> str:
    """A setting in words, for a row of the table."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or DEFAULT


def emit(task: tuple[str, int, str, Setting, Path]) -> str | None:
    """Writes the sources of one setting; why not where the rules reject it."""
    import tile2cu

    name, number, setting_label, bindings, folder = task
    suite = SUITES[name]
    try:
        found = tile2cu.emit(ROOT / "examples" / f"{suite.file}.py", suite.kernel, target=TARGET, **bindings)
    except tile2cu.Error as error:
        return str(error).splitlines()[0]
    place = folder / name / f"{number}-{setting_label}".replace(" ", "-").replace("=", "")  # nvcc splits at commas
    place.mkdir(parents=True)
    (place / LABEL).write_text(setting_label, encoding="utf-8")
    for file, content in found[suite.kernel].files.items():
        (place / file).write_text(content, encoding="utf-8")
    return None


def tasks(names: list[str], folder: Path) -> Iterator[tuple[str, int, str, Setting, Path]]:
    """All settings of the suites, the file's own among them."""
    for name in names:
        suite = SUITES[name]
        for number, bindings in enumerate(suite.bindings):
            for setting in ({}, *suite.settings):
                if _elements(suite, {**bindings, **setting}) > ACCUMULATORS:
                    continue
                yield name, number, label(setting), {**bindings, **setting}, folder


def _elements(suite: Suite, bindings: Setting) -> float:
    """The elements of a row kernel's tile for each thread; 0 of other kernels, and of the file's own setting."""
    if not suite.columns or "threads" not in bindings:
        return 0.0
    return float(bindings["block_M"] * bindings[suite.columns] / bindings["threads"])


def attentions() -> Iterator[Any]:
    """The 24 workloads of attention."""
    import torch
    from workloads import Workload, exact_attention, normal

    for dim, shapes in ATTENTIONS.items():
        for (batch, heads, sequence), causal in product(shapes, (True, False)):
            q, k, v = (normal(batch, sequence, heads, dim) for _ in range(3))
            yield Workload(
                suite="attention",
                name=f"dim {dim}, {batch} x {heads} x {sequence}{', causal' if causal else ''}",
                inputs=[q, k, v],
                output=torch.empty_like(q),
                peers={},
                reference=exact_attention(q, k, v, causal),
                bindings={"causal": causal},
                flops=4.0 * batch * heads * sequence**2 * dim / (2 if causal else 1),
            )


def workloads(name: str) -> Iterator[Any]:
    """What a suite's kernels are timed on; of the norms in half a part."""
    import workloads as all_workloads

    if name == "attention":
        return attentions()
    found = all_workloads.SUITES[name]()
    if name in ("dequant_gemm", "linear_fp4"):
        return (work for work in found if work.name in PRODUCTS)
    if name in ("rmsnorm", "layernorm"):
        wanted = {f"norm_{rows}x{columns}" for rows, columns in NORMS}
        return (work for work in found if work.name.split("/")[0] in wanted and "f32" not in work.name)
    return found


def build(text: Any, scratch: Path) -> Any:
    """A text, compiled; None where nvcc fails."""
    from prebuilt import build as compiled
    from prebuilt import device_arch

    try:
        return compiled(text, arch=device_arch(), out=scratch, nvcc="nvcc")
    except Exception as error:
        print(f"{text.path}: {error}"[:300], file=sys.stderr)
        return None


def compiled(names: list[str], scratch: Path) -> dict[str, list[Any]]:
    """The kernels of the suites, emitted and compiled on all cores."""
    from prebuilt import texts

    folder = scratch / "sources"
    todo = list(tasks(names, folder))
    with ProcessPoolExecutor() as pool:
        for task, why in zip(todo, pool.map(emit, todo, chunksize=4), strict=True):
            if why:
                print(f"{task[0]} {task[2]}: {why}", file=sys.stderr)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        made = partial(build, scratch=scratch)
        return {name: [each for each in threads.map(made, texts(folder / name)) if each] for name in names}


def right(kernels: list[Any], work: Any) -> dict[str, tuple[Any, float]]:
    """The call of each setting that computes the workload, and its error; wrong ones are reported."""
    import torch
    from gpu import error_of, sizes_for

    found = {}
    for kernel in kernels:
        if (sizes := sizes_for(kernel, work)) is None:
            continue
        setting = (kernel.path.parent / LABEL).read_text(encoding="utf-8")
        call = kernel.bind(work.tensors, sizes, torch.cuda.current_stream().cuda_stream)
        error = error_of(call, work)
        if error <= work.tolerance:
            found[setting] = call, error
        elif math.isfinite(error):
            print(f"WRONG {work.suite} {work.name} {setting}: {error}", flush=True)
    return found


def time(out: Path, names: list[str]) -> None:
    """Emits, compiles, compares and times; a row for each setting of each workload."""
    import torch

    from tile2cu_runtime.timing import Timer, TorchGpu

    torch.backends.cuda.matmul.allow_tf32 = False
    timer = Timer(TorchGpu())
    with tempfile.TemporaryDirectory() as scratch, out.open("w", newline="", encoding="utf-8") as file:
        kernels = compiled(names, Path(scratch))
        writer = csv.writer(file)
        writer.writerow(SCHEMA)
        for name, work in ((suite, each) for suite in names for each in workloads(suite)):
            calls = right(kernels[name], work)
            rounds = [
                {each: timer.median_ms(call, BUDGET_MS) for each, (call, _) in calls.items()} for _ in range(ROUNDS)
            ]
            us = {each: statistics.median(times[each] for times in rounds) * 1e3 for each in calls}
            writer.writerows((name, work.name, each, f"{us[each]:.2f}", f"{calls[each][1]:.1e}") for each in us)
            file.flush()
            if us:
                best = min(us, key=lambda each: us[each])
                ratio = us[best] / us.get(DEFAULT, math.nan)
                print(
                    f"{name:13} {work.name:36} {len(us):3} default {ratio:.3f} of {best}, {us[best]:.1f} us", flush=True
                )


def table(path: Path) -> None:
    """Prints for each suite the geometric mean and the least of the best setting's time over the default's."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv.DictReader(path.open(encoding="utf-8")):
        times.setdefault((row["suite"], row["workload"]), {})[row["setting"]] = float(row["us"])
    print("| suite | workloads | default over best: mean | least |\n|---|---|---|---|")
    for suite in dict.fromkeys(name for name, _ in times):
        ratios = [min(of.values()) / of[DEFAULT] for (name, _), of in times.items() if name == suite and DEFAULT in of]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"| {suite} | {len(ratios)} | {mean:.3f} | {min(ratios):.2f} |")


def main(verb: str, path: str, *names: str) -> None:
    if verb == "time":
        time(Path(path), list(names) or list(SUITES))
    else:
        table(Path(path))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "runtime", "benchmarks")]
    main(*sys.argv[1:])
