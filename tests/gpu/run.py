"""Runs emitted kernels on this machine's GPU and compares them with NumPy: `python tests/gpu/run.py FOLDER`.

Needs NumPy, torch and nvcc, and of tile2cu only this checkout: FOLDER holds NAME.cu, NAME.h and NAME.json, at any
depth. With `--device cpu` the sources run on the CPU engine, checked; that needs tile2cu's runtime installed.

Writes results.json into --out ($OUT, or the current folder): one row per kernel, size and kind of data, with the
SHA-256 of the output's bytes. `--expect other.json` requires on small-integer data the bytes of another run, such as
the CPU engine's. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from comparison import Row, on_cpu, on_gpu, rows_of  # noqa: E402
from prebuilt import build, device_arch, texts  # noqa: E402


def run(folder: Path, device: str, nvcc: str) -> list[Row]:
    found = texts(folder)
    if device == "cpu":
        return [row for text in found for row in rows_of(text, on_cpu(text))]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = [Path(scratch) / str(number) for number in range(len(found))]  # targets share file names
        built = pool.map(lambda text, out: build(text, arch=device_arch(), out=out, nvcc=nvcc), found, folders)
        return [row for kernel in built for row in rows_of(kernel, on_gpu(kernel))]


def disagreements(rows: list[Row], expected: list[dict[str, Any]]) -> list[str]:
    """Rows on integers whose bytes differ from the other run's, and rows that the other run lacks."""
    others = {Row(**other).key: other["sha256"] for other in expected}
    return [
        f"{row.kernel} {row.sizes}: other bytes than expected"
        for row in rows
        if row.data == "integers" and others.get(row.key) != row.sha256
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--expect", type=Path, help="a results.json whose bytes must be met on small integers")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    rows = run(options.folder, options.device, options.nvcc)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(
        json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8"
    )
    for row in rows:
        answer = "refused, as its text says" if row.refused else row.wrong or "ok"
        print(f"{row.kernel:32} {row.data:8} {row.sizes!s:48} error {row.error:.2e}  {answer}")
    only_refused = {row.kernel for row in rows} - {row.kernel for row in rows if not row.refused}
    wrong = [f"{kernel}: no size that it takes was tried" for kernel in sorted(only_refused)]
    wrong += [f"{row.kernel} {row.sizes}: {row.wrong}" for row in rows if row.wrong]
    if options.expect:
        wrong += disagreements(rows, json.loads(options.expect.read_text(encoding="utf-8")))
    print(f"{len(rows)} comparisons, {len(wrong)} wrong", *wrong, sep="\n  ")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
