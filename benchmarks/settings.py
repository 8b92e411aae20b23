"""Attention, GEMV, norms and dequantising GEMMs in many settings of their tiles: the choice beside the best.

    python benchmarks/settings.py time RESULTS.csv [SUITE ...]  # on a machine with a GPU, torch and nvcc
    python benchmarks/settings.py table RESULTS.csv             # the choice's and the file's speed over the best one's

Each setting is emitted, compiled, compared with the reference, and timed alternately with the others of its workload by
the protocol of docs/measuring.md. `default` are the file's own values, `choice` what `load` takes where the sizes are
known and no tile parameter is given. A setting that the rules or the launcher reject is left out; so is one that takes
nvcc more than a minute.
"""

from __future__ import annotations

import csv
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = "cuda:sm_90a"
BUDGET_MS, ROUNDS = float(os.environ.get("BUDGET_MS", "30")), int(os.environ.get("ROUNDS", "2"))
BUILD_SECONDS, BUILDS = 60, 16  # of one build, and so many at a time
# (batch, heads, sequence) for each head dimension, causal and full: 24 workloads
ATTENTIONS = {
    64: ((8, 32, 512), (4, 32, 1024), (1, 32, 4096), (2, 32, 8192)),
    128: ((8, 32, 512), (4, 32, 1024), (1, 32, 4096), (2, 32, 8192)),
    256: ((8, 16, 512), (4, 16, 1024), (1, 16, 4096), (2, 16, 8192)),
}
NORMS = ((8192, 256), (8192, 1024), (8192, 4096), (8192, 8192), (65536, 256), (65536, 1024), (65536, 4096))
SOFTMAXES = ((8192, 1000), (65536, 1000), (8192, 8192))
PRODUCTS = ((4096, 1024, 8192), (4096, 8192, 8192), (8192, 1024, 8192), (1024, 1024, 1024), (4096, 4096, 4096))
GEMVS = ((16384, 16384), (14336, 14336), (14336, 57344), (9216, 9216), (36864, 9216))
Setting = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A kernel of examples/, with bindings of which each has its own workloads, and the settings that are tried.

    `sizes` are those of the workloads, for the choice, which takes them as known, with bindings as `fixed_by` gives
    them. `fits` tells whether a setting, with its bindings, is worth a build.
    """

    file: str
    kernel: str
    bindings: tuple[Setting, ...]
    settings: tuple[Setting, ...]
    sizes: tuple[Setting, ...] = ()
    fixed_by: tuple[str, ...] = ()
    fits: Callable[[Setting], bool] = lambda setting: True

    def choices(self) -> Iterator[Setting]:
        """The bindings of each choice: a workload's sizes, and what is no size."""
        others = ({name: each[name] for name in each if name not in self.fixed_by} for each in self.bindings)
        unlike = [dict(pairs) for pairs in dict.fromkeys(tuple(each.items()) for each in others)]
        return ({**other, **sizes} for other, sizes in product(unlike, self.sizes))


def grid(**values: tuple[Any, ...]) -> tuple[Setting, ...]:
    """All combinations."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


def joined(*groups: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """All combinations of settings, one of each group."""
    return tuple({name: value for each in parts for name, value in each.items()} for parts in product(*groups))


WARPGROUPS = tuple({"block_M": 64 * n, "threads": 128 * n} for n in (1, 2, 3))
REGISTERS = 64  # of a thread, for the elements of a row or for sums: more are slow, and take nvcc minutes
PACKET = 8  # elements of 16 bits that a thread loads at once
TILES = tuple(
    each
    for each in grid(block_M=(64, 128, 256), block_N=(64, 128, 256), block_K=(64, 128), threads=(128, 256))
    if each["block_M"] * each["block_N"] <= 128 * each["threads"]
)
ROWS = grid(block_M=(1, 2, 4, 8, 16), threads=(32, 64, 128, 256, 512))


def named(names: str, values: tuple[tuple[int, ...], ...]) -> tuple[Setting, ...]:
    """Sizes by their names."""
    return tuple(dict(zip(names.split(), each, strict=True)) for each in values)


def row_fits(columns: str, least: int) -> Callable[[Setting], bool]:
    """Whether a thread has at least so many elements of whole rows in registers, and not too many."""

    def fits(given: Setting) -> bool:
        return least <= given["block_M"] * given[columns] / given["threads"] <= REGISTERS

    return fits


def vector_fits(share: int) -> Callable[[Setting], bool]:
    """Whether a thread has at least a packet of each tile, and not more sums, one for `share` columns, than fit."""

    def fits(given: Setting) -> bool:
        elements = given["block_N"] * given["block_K"] / given["threads"]
        return elements >= 2 * PACKET and elements / share <= REGISTERS

    return fits


def norm(name: str) -> Suite:
    dims = grid(dim=tuple(sorted({dim for _, dim in NORMS})))
    sizes, fits = named("M dim", NORMS), row_fits("dim", PACKET)
    return Suite(file=name, kernel=name, bindings=dims, settings=ROWS, sizes=sizes, fixed_by=("dim",), fits=fits)


SUITES = {
    "attention": Suite(
        file="attention",
        kernel="attention",
        bindings=joined(grid(dim=(64, 128, 256)), grid(is_causal=(True, False))),
        settings=joined(WARPGROUPS, grid(block_N=(64, 80, 96, 112, 128, 144, 160, 176), num_stages=(2, 3))),
    ),
    "gemv": Suite(
        file="gemv",
        kernel="gemv",
        bindings=({},),
        settings=grid(block_N=(2, 4, 8), block_K=(512, 1024, 2048), num_stages=(3, 4), threads=(64, 128, 256)),
        sizes=named("N K", GEMVS),
        fits=vector_fits(4),
    ),
    "rmsnorm": norm("rmsnorm"),
    "rmsnorm_silu": norm("rmsnorm_silu"),
    "layernorm": norm("layernorm"),
    "row_softmax": Suite(
        file="row_softmax",
        kernel="row_softmax",
        bindings=grid(N=(1000, 8192)),
        settings=ROWS,
        sizes=named("M N", SOFTMAXES),
        fixed_by=("N",),
        fits=row_fits("N", PACKET // 2),
    ),
    "dequant_gemv": Suite(
        file="dequant",
        kernel="dequant_gemv",
        bindings=grid(group=(32, None), zero_dtype=("float16",)),
        settings=grid(block_N=(4, 8, 16), block_K=(512, 1024, 2048), num_stages=(3, 4), threads=(64, 128)),
        sizes=tuple({"M": 1, **each} for each in named("N K", GEMVS)),
        fits=vector_fits(32),
    ),
    "dequant_gemm": Suite(
        file="dequant",
        kernel="dequant_gemm",
        bindings=grid(weights=("fp4",)),
        settings=joined(TILES, grid(num_stages=(2, 3, 4))),
        sizes=named("M N K", PRODUCTS),
    ),
    "linear_fp4": Suite(
        file="linear_int4_prefill",
        kernel="linear_int4_prefill",
        bindings=grid(weights=("fp4",)),
        settings=joined(TILES, grid(num_stages=(2, 3, 4))),
        sizes=named("M N K", PRODUCTS),
        fits=lambda setting: setting["block_K"] == 64,  # two groups of scales
    ),
}
SCHEMA = ("suite", "workload", "setting", "us", "error")
DEFAULT, CHOICE, LABEL = "default", "choice", "setting.txt"
Task = tuple[str, int, str, Setting, Path]


def label(setting: Setting) -> str:
    """A setting in words, for a row of the table."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or DEFAULT


def emit(task: Task) -> str | None:
    """Writes the sources of one setting; why not where the rules reject it."""
    from tile2cu.api import emit_text
    from tile2cu.core.errors import Tile2CuError
    from tile2cu.core.origin import EmitOptions
    from tile2cu.targets import find

    name, _, setting_label, bindings, _ = task
    suite = SUITES[name]
    options = EmitOptions(tiles="auto" if setting_label == CHOICE else "default")
    path = ROOT / "examples" / f"{suite.file}.py"
    try:
        (found,) = emit_text(path, kernel=suite.kernel, target=find(TARGET), bindings=bindings, options=options)
    except Tile2CuError as error:
        return str(error).splitlines()[0]
    place = place_of(task)
    place.mkdir(parents=True)
    (place / LABEL).write_text(setting_label, encoding="utf-8")
    for file, content in found.files.items():
        (place / file).write_text(content, encoding="utf-8")
    return None


def place_of(task: Task) -> Path:
    """Where the sources of a setting are."""
    name, number, setting_label, _, folder = task
    return folder / name / f"{number}-{setting_label}".replace(" ", "-").replace("=", "")  # nvcc splits at commas


def tasks(name: str, folder: Path) -> Iterator[Task]:
    """All settings of a suite, the file's own and the choices among them."""
    suite = SUITES[name]
    for number, bindings in enumerate(suite.bindings):
        yield name, number, DEFAULT, bindings, folder
        for setting in suite.settings:
            if suite.fits({**bindings, **setting}):
                yield name, number, label(setting), {**bindings, **setting}, folder
    for number, bindings in enumerate(suite.choices()):
        yield name, number, CHOICE, bindings, folder


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


def silu_norms() -> Iterator[Any]:
    """RMSNorm and SiLU."""
    import torch
    from workloads import Workload, normal

    for rows, channels in NORMS:
        x, w = normal(rows, channels), normal(channels)
        exact = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + 1e-6) * w.double()
        yield Workload(
            suite="rmsnorm_silu",
            name=f"norm_{rows}x{channels}",
            inputs=[x, w],
            output=torch.empty_like(x),
            peers={},
            reference=exact * torch.sigmoid(exact),
            bytes_moved=2.0 * x.numel() * x.element_size(),
            tolerance=2e-3,
        )


def workloads(name: str) -> Iterator[Any]:
    """What a suite's kernels are timed on; of the norms in half a part."""
    import workloads as all_workloads

    if name == "attention":
        return attentions()
    if name == "rmsnorm_silu":
        return silu_norms()
    found = all_workloads.SUITES[name]()
    if name in ("dequant_gemm", "linear_fp4"):
        wanted = {each for each, sizes in all_workloads.GEMMS.items() if sizes in PRODUCTS}
        return (work for work in found if work.name in wanted)
    if name in ("gemv", "dequant_gemv"):
        wanted = {each for each, sizes in all_workloads.GEMVS.items() if sizes in GEMVS}
        return (work for work in found if work.name.removeprefix("W4A16_").split("/")[0] in wanted)
    if name in ("rmsnorm", "layernorm"):
        wanted = {f"norm_{rows}x{columns}" for rows, columns in NORMS}
        return (work for work in found if work.name.split("/")[0] in wanted and "f32" not in work.name)
    return found


class Builds:
    """The kernels of suites, emitted in processes and compiled on all cores, one suite after the other."""

    def __init__(self, names: list[str], scratch: Path) -> None:
        self._processes, self._threads = ProcessPoolExecutor(), ThreadPoolExecutor(BUILDS)
        self._scratch = scratch
        self._made = {name: [self._submitted(task) for task in tasks(name, scratch / "sources")] for name in names}

    def of(self, name: str) -> list[Any]:
        """The kernels of a suite that could be built."""
        return [found for each in self._made[name] if (found := each.result()) is not None]

    def _submitted(self, task: Task) -> Future[Any]:
        emitted = self._processes.submit(emit, task)
        return self._threads.submit(self._built, task, emitted)

    def _built(self, task: Task, emitted: Future[str | None]) -> Any:
        """A kernel; None, with a message, where it cannot be emitted or compiled."""
        from prebuilt import build, device_arch, texts

        if why := emitted.result():
            print(f"{task[0]} {task[2]}: {why}", file=sys.stderr)
            return None
        (text,) = texts(place_of(task))
        try:
            return build(text, arch=device_arch(), out=self._scratch / task[0], seconds=BUILD_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{text.path}: {error}"[-200:], file=sys.stderr)
            return None


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
    start = monotonic()
    with tempfile.TemporaryDirectory() as scratch, out.open("w", newline="", encoding="utf-8") as file:
        builds = Builds(names, Path(scratch))
        timer = Timer(TorchGpu())
        writer = csv.writer(file)
        writer.writerow(SCHEMA)
        for name in names:
            kernels = builds.of(name)
            print(f"{name}: {len(kernels)} kernels after {monotonic() - start:.0f} s", flush=True)
            for work in workloads(name):
                calls = right(kernels, work)
                rounds = [
                    {each: timer.median_ms(call, BUDGET_MS) for each, (call, _) in calls.items()} for _ in range(ROUNDS)
                ]
                us = {each: statistics.median(times[each] for times in rounds) * 1e3 for each in calls}
                writer.writerows((name, work.name, each, f"{us[each]:.2f}", f"{calls[each][1]:.1e}") for each in us)
                file.flush()
                if us:
                    best = min(us, key=lambda each: us[each])
                    over = ", ".join(f"{each} {us[best] / us[each]:.3f}" for each in (CHOICE, DEFAULT) if each in us)
                    print(f"{name:13} {work.name:36} {len(us):3} {over} of {best}, {us[best]:.1f} us", flush=True)


def table(path: Path) -> None:
    """Prints for each suite the geometric mean and the least of the best setting's time over the choice's."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv.DictReader(path.open(encoding="utf-8")):
        times.setdefault((row["suite"], row["workload"]), {})[row["setting"]] = float(row["us"])
    print("| suite | workloads | setting | over the best: mean | least |\n|---|---|---|---|---|")
    for suite, what in product(dict.fromkeys(name for name, _ in times), (CHOICE, DEFAULT)):
        ratios = [min(of.values()) / of[what] for (name, _), of in times.items() if name == suite and what in of]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"| {suite} | {len(ratios)} | {what} | {mean:.3f} | {min(ratios):.2f} |")


def main(verb: str, path: str, *names: str) -> None:
    if verb == "time":
        time(Path(path), list(names) or list(SUITES))
    else:
        table(Path(path))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "runtime", "benchmarks")]
    main(*sys.argv[1:])
