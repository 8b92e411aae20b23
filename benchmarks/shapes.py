"""C = relu(A @ B), half, over 100 shapes of LLM layers: every emitted text in a folder beside cuBLAS.

    python benchmarks/shapes.py emit OUT               # here: texts of gemm_relu and gemm_few_rows in many tiles
    python benchmarks/shapes.py time OUT SHAPES.csv    # on a machine with a GPU, torch and nvcc; needs no tile2cu
    python benchmarks/shapes.py table SHAPES.csv       # geometric mean and least of cuBLAS' time over ours

A CUDA graph has 6 calls on 3 matrices of weights in turns; graphs of all texts are replayed in turns, 5 rounds; a
figure is the median in microseconds a call. Results are compared with torch's before they are timed.
"""

from __future__ import annotations

import csv
import ctypes
import itertools
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROWS = (1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WEIGHTS = (  # N, K
    (4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (7168, 2048),
    (2112, 7168), (8192, 8192), (5120, 5120), (27648, 5120), (32000, 4096),
)  # fmt: skip
GEMM_TILES = (  # block_M, block_N, block_K, num_stages, threads; the first are the file's defaults
    (128, 128, 32, 3, 128), (128, 256, 64, 3, 256), (128, 256, 64, 4, 256), (128, 192, 64, 4, 256),
    (256, 128, 64, 3, 256), (128, 128, 64, 3, 256), (128, 128, 64, 4, 256), (128, 128, 64, 4, 128),
    (64, 256, 64, 4, 128), (64, 128, 128, 4, 128), (64, 128, 128, 5, 128), (64, 128, 64, 6, 128),
    (64, 64, 128, 4, 128), (64, 64, 128, 6, 128), (64, 32, 128, 8, 128),
)  # fmt: skip
FEW_ROWS_TILES = tuple(itertools.product((16, 64), (32, 64, 128), (64, 128), (1, 2, 4, 8)))  # M, N, K, splits
CALLS, COPIES, ROUNDS = 6, 3, 5
TOLERANCE = 2e-3  # of the norm of the difference, over the norm of torch's result
Call = Callable[[int], None]


def texts() -> Iterator[tuple[str, str, dict[str, int]]]:
    """(label, kernel, bindings) of each text."""
    for m, n, k, stages, threads in GEMM_TILES:
        tile = {"block_M": m, "block_N": n, "block_K": k, "num_stages": stages, "threads": threads}
        yield f"g_{m}x{n}x{k}s{stages}t{threads}", "gemm_relu", tile
    for m, n, k, splits in FEW_ROWS_TILES:
        stages = 4 if m == 16 or k == 64 else 3
        tile = {"block_M": m, "block_N": n, "block_K": k, "splits": splits, "num_stages": stages}
        yield f"f_{m}x{n}x{k}p{splits}", "gemm_few_rows", tile


def emit(folder: Path) -> None:
    """Writes the texts, and a table of them; tiles that do not fit are left out."""
    import tile2cu

    table: dict[str, dict[str, Any]] = {}
    for label, kernel, bindings in texts():
        path = ROOT / "examples" / f"{kernel}.py"
        try:
            files = tile2cu.emit(path, kernel, target="cuda:sm_90a", **bindings)[kernel].files
        except tile2cu.Error as error:
            print(f"{label}: {error}", file=sys.stderr)
            continue
        (folder / label).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / label / name).write_text(content, encoding="utf-8")
        table[label] = {"kernel": kernel, **bindings}
    (folder / "table.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def launcher(folder: Path, label: str, kernel: str) -> Any:
    """The C function of a text, built with nvcc if it is not yet."""
    source, library = folder / label / f"{kernel}.cu", folder / label / "text.so"
    code = ("-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC")
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        command = ["nvcc", *code, "-I", str(ROOT / "headers"), "-o", str(library), str(source), "-lcuda"]
        subprocess.run(command, check=True)
    function = getattr(ctypes.CDLL(str(library)), kernel)
    pointer = ctypes.c_void_p
    function.argtypes = [pointer] * 3 + [ctypes.c_int] * 3 + [pointer, ctypes.c_size_t, pointer]
    return function


def suits(tile: Mapping[str, Any], rows: int) -> bool:
    """Whether a text is timed with so many rows: gemm_few_rows up to 128, small tiles of gemm_relu below 2048."""
    if tile["kernel"] == "gemm_few_rows":
        return rows <= 128 and (tile["block_M"] == 16) == (rows <= 16)
    return rows < 2048 or tile["block_M"] * tile["block_N"] >= 8192


def time(folder: Path, out: Path) -> None:
    """Times all texts on all shapes, and writes a row for each shape. Raises RuntimeError for a wrong result."""
    import torch

    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    with ThreadPoolExecutor() as pool:
        built = pool.map(lambda label: launcher(folder, label, table[label]["kernel"]), table)
        functions = dict(zip(table, built, strict=True))
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["M", "N", "K", "cublas", *table])
        writer.writeheader()
        for (n, k), m in itertools.product(WEIGHTS, ROWS):
            a = torch.randn(m, k, device="cuda", dtype=torch.float16)
            b = [torch.randn(k, n, device="cuda", dtype=torch.float16) / k**0.5 for _ in range(COPIES)]
            c = torch.empty(m, n, device="cuda", dtype=torch.float16)

            def product(i: int, a: Any = a, b: Any = b, c: Any = c) -> None:
                torch.mm(a, b[i], out=c)

            product(0)
            expected = torch.relu(c)
            graphs = {"cublas": graph(product)}
            for label in (label for label in table if suits(table[label], m)):
                call = call_of(functions[label], a, b, c, (m, n, k))
                c.fill_(float("nan"))
                call(0)
                error = float((c.float() - expected.float()).norm() / expected.float().norm())
                if not error < TOLERANCE:
                    raise RuntimeError(f"{label} is wrong on {m} x {n} x {k}: {error}")
                graphs[label] = graph(call)
            found = medians(graphs)
            writer.writerow({"M": m, "N": n, "K": k, **{label: f"{us:.2f}" for label, us in found.items()}})
            file.flush()


def call_of(function: Any, a: Any, b: Any, c: Any, sizes: tuple[int, int, int]) -> Call:
    """A call with the i-th matrix of weights."""
    import torch

    def call(i: int) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        status = function(a.data_ptr(), b[i].data_ptr(), c.data_ptr(), *sizes, None, 0, stream)
        if status:
            raise RuntimeError(f"status {status}")

    return call


def graph(call: Call) -> Any:
    """A CUDA graph of several calls."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call(0)
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for i in range(CALLS):
            call(i % COPIES)
    return captured


def medians(graphs: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds a call, of graphs replayed alternately."""
    import torch

    times: dict[str, list[float]] = {label: [] for label in graphs}
    for captured in graphs.values():
        captured.replay()
    for label, captured in [*graphs.items()] * ROUNDS:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        captured.replay()
        end.record()
        end.synchronize()
        times[label].append(start.elapsed_time(end) / CALLS * 1e3)
    return {label: statistics.median(each) for label, each in times.items()}


def table(path: Path) -> None:
    """Prints, for several choices of texts, the geometric mean and the least of cuBLAS' time over the best one's."""
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    labels = [label for label in rows[0] if label not in ("M", "N", "K", "cublas")]
    default, *_ = labels
    relu = [label for label in labels if label.startswith("g_")]
    choices = {"gemm_relu, default tile": [default], "gemm_relu, best tile": relu, "and gemm_few_rows": labels}
    print("| texts | geometric mean | least (M, N, K) |\n|---|---|---|")
    for about, chosen in choices.items():
        found = [(float(row["cublas"]) / min(float(row[each]) for each in chosen if row[each]), row) for row in rows]
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in found))
        least, row = min(found, key=lambda each: each[0])
        print(f"| {about} | {mean:.3f} | {least:.2f} ({row['M']}, {row['N']}, {row['K']}) |")


def main(verb: str, *paths: str) -> None:
    {"emit": emit, "time": time, "table": table}[verb](*map(Path, paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
