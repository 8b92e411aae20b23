"""C = relu(A @ B), half: the sources that the model chooses beside cuBLAS, on 100 shapes of LLM layers and 40 others.

    python benchmarks/chosen.py emit OUT               # here: the sources, and which of them each shape takes
    python benchmarks/chosen.py time OUT RESULTS.csv   # on a machine with a GPU, torch and nvcc; needs no tile2cu
    python benchmarks/chosen.py table RESULTS.csv      # geometric mean and least of cuBLAS' time over ours

For each shape the model ranks all settings of the kernels of a family together. Timed are its choice, the next two with
other tiles, gemm_relu's own tiles, and, on every eighth shape (an audit), all sources that any shape takes. Times are
taken as in shapes.py. The 40 shapes, which no constant was fitted to, are random: SEED decides them.
"""

from __future__ import annotations

import csv
import json
import math
import random
import statistics
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from shapes import ROOT, ROWS, TOLERANCE, WEIGHTS, graph, launcher, medians

SEED, OTHERS = 20261128, 40
RANDOM_ROWS = (1, 3, 8, 17, 40, 100, 200, 333, 777, 1500, 3000, 5000)
KERNELS = {"gemm_relu": "g", "gemm_few_rows": "f", "gemm_clusters": "c", "gemm_hybrid": "h"}  # and how labels begin
TARGET, OWN = "cuda:sm_90a", "gemm_relu"  # whose own tiles are timed beside the choice
LEADERS, AUDIT = 3, 8
WORKSPACE = 128 << 20  # bytes, which is enough for the parts of gemm_hybrid's tiles
Shape = tuple[int, int, int]


def all_shapes() -> list[tuple[Shape, bool]]:
    """(M, N, K) of each shape, and whether it is one of the others."""
    layers = [((m, n, k), False) for (n, k), m in product(WEIGHTS, ROWS)]
    drawn = random.Random(SEED)
    others: list[tuple[Shape, bool]] = []
    while len(others) < OTHERS:
        # Every fourth pair has odd multiples of 16 bytes, which TMA takes and likes least.
        step, most = (8, 2000) if len(others) % 4 == 3 else (64, 300)
        n, k = (step * drawn.randrange(most // 16, most) for _ in range(2))
        others.append(((drawn.choice(RANDOM_ROWS), n, k), True))
    return layers + others


def every_kernel() -> dict[str, Any]:
    """The kernels of the family, with their tile parameters."""
    from tile2cu.choosing import tunable
    from tile2cu.targets import find

    paths = {name: ROOT / "examples" / f"{name}.py" for name in KERNELS}
    return {
        name: tunable(path, path.read_text(encoding="utf-8"), None, find(TARGET), {}) for name, path in paths.items()
    }


def emit(folder: Path) -> None:
    """Writes the sources, a table of them, and the labels of each shape."""
    with ProcessPoolExecutor() as pool:
        plan = list(pool.map(planned, all_shapes()))
        table = {label: each for own in plan for label, each in own.pop("settings").items()}
        used = sorted({label for own in plan for label in own["predicted"]})
        settings = [dict(table[label]) for label in used]
        kernels = [str(each.pop("kernel")) for each in settings]
        list(pool.map(written, [folder] * len(used), used, kernels, settings))
    content = {"sources": {label: table[label] for label in used}, "shapes": plan}
    (folder / "plan.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{len(used)} sources")


def planned(each: tuple[Shape, bool]) -> dict[str, Any]:
    """What is timed on a shape: the choice, the next ones with other tiles and the own tiles, with their settings."""
    from tile2cu.chooser.choose import NoModel

    (m, n, k), other = each
    found: dict[str, float] = {}
    settings: dict[str, dict[str, Any]] = {}
    own = ""
    for name, kernel in _kernels().items():
        with suppress(NoModel):
            ranking = kernel.ranking({"M": m, "N": n, "K": k})
            leaders, tiles = ranking.best(2 * LEADERS), set()
            for ranked in [*leaders, *([ranking.default] if name == OWN else [])]:
                label = label_of(name, dict(ranked.setting))
                settings[label] = {"kernel": name, **dict(ranked.setting)}
                if ranked is ranking.default and name == OWN:
                    own, found[label] = label, ranked.us
                elif ranking.tile(ranked) not in tiles and len(tiles) < LEADERS:
                    tiles.add(ranking.tile(ranked))
                    found[label] = ranked.us
    best = sorted(found, key=lambda label: found[label])[:LEADERS]
    predicted = {label: found[label] for label in dict.fromkeys((*best, own))}
    return {"M": m, "N": n, "K": k, "other": other, "choice": best[0], "predicted": predicted, "settings": settings}


@lru_cache(maxsize=1)
def _kernels() -> dict[str, Any]:
    return every_kernel()


def written(folder: Path, label: str, kernel: str, setting: Mapping[str, Any]) -> None:
    """Writes the source of a setting, if it is not yet there."""
    import tile2cu

    if (folder / label / f"{kernel}.cu").exists():
        return

    (folder / label).mkdir(parents=True, exist_ok=True)
    path = ROOT / "examples" / f"{kernel}.py"
    for name, content in tile2cu.emit(path, kernel, target=TARGET, **setting)[kernel].files.items():
        (folder / label / name).write_text(content, encoding="utf-8")


def label_of(kernel: str, setting: Mapping[str, int]) -> str:
    tile = f"{setting['block_M']}x{setting['block_N']}x{setting['block_K']}"
    parts = f"p{setting['splits']}" if "splits" in setting else ""
    return f"{KERNELS[kernel]}_{tile}{parts}s{setting['num_stages']}t{setting['threads']}"


def time(folder: Path, out: Path) -> None:
    """Times the sources of each shape, and writes a row for each time. Raises RuntimeError for a wrong result."""
    import torch

    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    sources = plan["sources"]
    with ThreadPoolExecutor() as pool:
        built = pool.map(lambda label: launcher(folder, label, sources[label]["kernel"]), sources)
        functions = dict(zip(sources, built, strict=True))
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("M", "N", "K", "other", "source", "role", "us", "predicted_us"))
        for number, each in enumerate(plan["shapes"]):
            labels = list(each["predicted"])
            if number % AUDIT == 0:
                labels += [label for label in sources if label not in labels and _suits(sources[label], each["M"])]
            sizes = each["M"], each["N"], each["K"]
            for label, us in timed(torch, {label: functions[label] for label in labels}, sizes).items():
                role = "choice" if label == each["choice"] else "default" if label == labels[-1] else ""
                predicted = each["predicted"].get(label)
                row = (*sizes, int(each["other"]), label, role, f"{us:.2f}", f"{predicted:.2f}" if predicted else "")
                writer.writerow(row)
            file.flush()


def _suits(source: Mapping[str, Any], rows: int) -> bool:
    """Whether a source of another shape's is timed on an audited one: not where most of its tiles would be empty."""
    if source["kernel"] in ("gemm_few_rows", "gemm_clusters"):
        return rows <= (128 if source["block_M"] < 128 else 512)
    return source["block_M"] <= max(128, rows) and (rows < 2048 or source["block_M"] * source["block_N"] >= 8192)


def timed(torch: Any, functions: Mapping[str, Any], sizes: Shape) -> dict[str, float]:
    """Microseconds a call of each function and of cuBLAS, alternately. Raises RuntimeError for a wrong result."""
    m, n, k = sizes
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = [torch.randn(k, n, device="cuda", dtype=torch.float16) / k**0.5 for _ in range(3)]
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    parts = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)
    torch.mm(a, b[0], out=c)
    expected = torch.relu(c).float()
    graphs = {"cublas": graph(lambda i: torch.mm(a, b[i], out=c))}
    for label, function in functions.items():

        def call(i: int, function: Any = function) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            if status := function(
                a.data_ptr(), b[i].data_ptr(), c.data_ptr(), m, n, k, parts.data_ptr(), WORKSPACE, stream
            ):
                raise RuntimeError(f"status {status}")

        c.fill_(float("nan"))
        call(0)
        error = float((c.float() - expected).norm() / expected.norm())
        if not error < TOLERANCE:
            raise RuntimeError(f"{label} is wrong on {sizes}: {error}")
        graphs[label] = graph(call)
    return medians(graphs)


def table(path: Path) -> None:
    """Prints how the choices, the file's own tiles and the best of those timed do against cuBLAS."""
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    shapes: dict[Shape, list[dict[str, str]]] = {}
    for row in rows:
        shapes.setdefault((int(row["M"]), int(row["N"]), int(row["K"])), []).append(row)
    print("| shapes | sources | geometric mean of cuBLAS | least (M, N, K) |\n|---|---|---|---|")
    for other, about in (("0", "100 of layers"), ("1", f"{OTHERS} others")):
        chosen = {shape: own for shape, own in shapes.items() if own[0]["other"] == other}
        for role in ("default", "choice", "best"):
            found = {shape: _us(own, "cublas") / _us(own, role) for shape, own in chosen.items()}
            least = min(found, key=lambda shape: found[shape])
            mean = math.exp(statistics.fmean(map(math.log, found.values())))
            print(f"| {about} | {role} | {mean:.3f} | {found[least]:.2f} {least} |")
        over = [_us(own, "best") / _us(own, "choice") for own in chosen.values()]
        print(f"| {about} | choice over the best timed | {statistics.fmean(over):.3f} (mean) | {min(over):.2f} |")
    audited = [own for own in shapes.values() if len(own) > LEADERS + 3]
    over = [_us(own, "best") / _us(own, "choice") for own in audited]
    print(f"| {len(audited)} audited | choice over the best | {statistics.fmean(over):.3f} (mean) | {min(over):.2f} |")


def _us(rows: list[dict[str, str]], role: str) -> float:
    """The time of a role: cublas, choice, default, or the best of all but cuBLAS."""
    if role == "best":
        return min(float(row["us"]) for row in rows if row["source"] != "cublas")
    if role == "cublas":
        return next(float(row["us"]) for row in rows if row["source"] == "cublas")
    found = [float(row["us"]) for row in rows if row["role"] == role]
    return found[0] if found else next(float(row["us"]) for row in rows if row["role"] == "choice")


def main(verb: str, *paths: str) -> None:
    {"emit": emit, "time": time, "table": table}[verb](*map(Path, paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
