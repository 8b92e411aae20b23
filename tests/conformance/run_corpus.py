"""Processes a folder of tile-language files, and reports the status of each kernel.

    python tests/conformance/run_corpus.py DIR [--run]

Every kernel is emitted with the arguments of the call in its file, compiled if --compile names a compiler, and with
--run also run on the CPU engine with all checks and compared with the reference interpreter (run_kernel.py). The table
goes to standard output; `--write` merges it into the committed one, which may only improve, and into docs/coverage.md.
All runs of a corpus take hours: with `--run --write --unrun` a kernel's status is committed when its run ends, and
another call continues with the kernels that have not run.
The folder is not part of this repository: a checkout of TileLang's `examples`, or with `--table tests` its
`testing/python`, of which the folders of TESTS are walked. With `--table cute` or `ck` the examples are emitted in that
style, and are not run. With `--table strangers` the folder has checkouts OWNER/NAME of the repositories in
strangers.json, at the commits there, which also states the arguments of their kernels.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "transpile"), str(ROOT / "runtime"), str(ROOT)]

from tests.conformance.drivers import files, repositories, with_arguments  # noqa: E402
from tests.conformance.reasons import REASONS, UNKNOWN, with_reason  # noqa: E402
from tile2cu.api import emit_text  # noqa: E402
from tile2cu.core.errors import Tile2CuError  # noqa: E402
from tile2cu.core.origin import EmitOptions  # noqa: E402
from tile2cu.frontend import kernel_names  # noqa: E402
from tile2cu.targets import Target, find  # noqa: E402

STYLES = ("cute", "ck")  # each has a table of the kernels of TileLang's examples that it emits
TABLES = {
    "examples": Path(__file__).with_name("status.json"),
    **{name: Path(__file__).with_name(f"status_{name}.json") for name in ("tests", "strangers", *STYLES)},
}
TESTS = ("kernel", "language")  # the folders of `testing/python` that have kernels, each a test's or made by one
COVERAGE = ROOT / "docs" / "coverage.md"
# From worst to best. `refused` is a diagnostic; `failed` is any other exception; `compiled` includes runs without a
# result (a finding of the engine, nothing to compare with), `ran` those with a wrong one.
RANKS = ("failed", "miscompiled", "refused", "emitted", "compiled", "ran", "correct")
_MARKS = {
    "examples": ("<!-- the conformance table: run_corpus.py --write -->", "<!-- end of the table -->"),
    "tests": ("<!-- the table of tests: run_corpus.py --table tests --write -->", "<!-- end of the table of tests -->"),
    "strangers": (
        "<!-- the table of repositories: run_corpus.py --table strangers --write -->",
        "<!-- end of the table of repositories -->",
    ),
}
# What one kernel's build and runs may take, in seconds.
RUN_SECONDS = 400


@dataclass(frozen=True)
class Row:
    """What became of one kernel.

    `status` is one of RANKS; behind it for a refusal the diagnostic's code, for a run that is not equal one of REASONS.
    """

    file: str
    kernel: str
    status: str
    message: str = ""
    seconds: float = 0.0
    texts: tuple[Path, ...] = ()
    choice: str = ""  # the arguments of the run

    @property
    def name(self) -> str:
        return f"{self.file}::{self.kernel}" if self.kernel else self.file


def emit_file(path: Path, folder: Path, target: Target, out: Path, style: str = "tl") -> Iterator[Row]:
    """The rows of one file's kernels; their texts are written below `out`."""
    relative = path.relative_to(folder).as_posix()
    text = path.read_text(encoding="utf-8")
    try:
        names = kernel_names(text, path)
    except Tile2CuError as error:
        yield Row(relative, "", f"refused {error.code}", error.message)
        return
    for name in names:
        start = time.perf_counter()
        folder_of = out / relative.removesuffix(".py") / name
        row = _emit_kernel(path, name, target, folder_of, EmitOptions(style=style))
        yield replace(row, file=relative, seconds=time.perf_counter() - start)


def _emit_kernel(path: Path, name: str, target: Target, out: Path, options: EmitOptions) -> Row:
    try:
        text = path.read_text(encoding="utf-8")
        emitted = with_arguments(
            path, text, name, lambda given: emit_text(path, kernel=name, target=target, bindings=given, options=options)
        )
    except Tile2CuError as error:
        return Row("", name, f"refused {error.code}", error.message)
    except Exception as error:  # an exception that is no diagnostic is a defect of ours: the table says so
        return Row("", name, "failed", repr(error))
    out.mkdir(parents=True, exist_ok=True)
    for file, content in ((file, content) for one in emitted for file, content in one.files.items()):
        (out / file).write_text(content, encoding="utf-8")
    texts = tuple(out / file for one in emitted for file in one.files if file.endswith((".cu", ".hip")))
    return Row("", name, "emitted", texts=texts)


def compiled(row: Row, command: list[str]) -> Row:
    """The row after its texts were compiled."""
    for text in row.texts:
        done = subprocess.run([*command, str(text)], capture_output=True, text=True)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "")
            return replace(row, status="miscompiled", message=first[-200:])
    return replace(row, status="compiled") if row.texts else row


def ran(row: Row, folder: Path, target: Target, seconds: float = RUN_SECONDS) -> Row:
    """The row after its kernel ran on the CPU engine, in a process of its own, for at most `seconds`."""
    if row.status != "emitted":
        return row
    command = [sys.executable, str(Path(__file__).with_name("run_kernel.py")), str(folder / row.file), row.kernel]
    try:
        done = subprocess.run([*command, "--target", target.name], capture_output=True, text=True, timeout=seconds)
        said = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        said = {"status": "compiled", "message": f"no end after {seconds:g} s", "choice": ""}
    except (ValueError, IndexError):
        return replace(row, message=f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    status = with_reason(said["status"], said["message"])
    return replace(row, status=status, message=said["message"], choice=said["choice"])


def compile_command(compiler: str, target: Target) -> list[str]:
    """A command that checks a text; its path follows."""
    include = f"-I{ROOT / 'headers'}"
    if compiler == "nvcc":
        arch = target.name.partition("sm_")[2]
        gencode = f"-gencode=arch=compute_{arch},code=sm_{arch}"
        return ["nvcc", "-std=c++17", gencode, include, "-c", "-o", "/dev/null"]
    return ["g++", "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wno-unknown-pragmas", include]


def told(row: Row) -> Row:
    """Says on standard error what became of a kernel, since all of them take long."""
    print(f"{row.status:10} {row.name}  {row.message[:200]} [{row.choice}]", file=sys.stderr, flush=True)
    return row


def survey(
    folder: Path,
    target: Target,
    *,
    only: str = "",
    compiler: str = "",
    run: bool = False,
    jobs: int = 2,
    parts: tuple[str, ...] = (".",),
    seconds: float = RUN_SECONDS,
    known: Mapping[str, str] | None = None,
    done: Callable[[Row], Row] = told,
    style: str = "tl",
) -> list[Row]:
    """All rows of a folder, in the order of its files.

    `known`: statuses by name; a kernel that has one beyond `emitted` does not run again. `done` has each row that ran.
    """
    known = known or {}

    def run_one(row: Row) -> Row:
        has_run = rank(known.get(row.name, "emitted")) > rank("emitted")
        return row if has_run else done(ran(row, folder, target, seconds))

    with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(jobs) as pool:
        rows = [row for path in files(folder, only, parts) for row in emit_file(path, folder, target, Path(out), style)]
        if compiler:
            command = compile_command(compiler, target)
            rows = list(pool.map(lambda row: compiled(row, command), rows))
        if run:
            rows = list(pool.map(run_one, rows))
    return rows


def rank(status: str) -> int:
    """How good a status is."""
    return RANKS.index(status.split()[0])


def regressions(rows: list[Row], table: dict[str, str], *, depth: str = "emitted") -> list[str]:
    """What the committed table says is better than what the rows say; kernels that are gone count, too.

    `depth` is as far as the rows' survey went: what stops there is no step back.
    """
    now = {row.name: row.status for row in rows}
    worse = ((name, was, now.get(name, "failed")) for name, was in table.items())
    return [
        f"{name}: {was}, now {found}" for name, was, found in worse if rank(found) < min(rank(was), RANKS.index(depth))
    ]


def read_tables(table: str = "examples") -> dict[str, dict[str, str]]:
    """The committed statuses, by target and name."""
    path = TABLES[table]
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def read_table(target: str, table: str = "examples") -> dict[str, str]:
    """The committed statuses of a target, by name."""
    return read_tables(table).get(target, {})


def write_table(target: str, rows: list[Row], *, whole: bool = True, table: str = "examples") -> None:
    """Commits the statuses of a target: names and statuses only, nothing of the files.

    A status as good or better stays where the kernel did not run now, and a reason where the run states none. `whole`:
    the rows are of the whole folder, and kernels that are not among them are gone.
    """
    tables = read_tables(table)
    old = tables.get(target, {})
    new = {} if whole else dict(old)
    for row in rows:
        was = old.get(row.name, row.status)
        has_not_run = row.status in ("emitted", "compiled") and rank(was) >= rank(row.status)
        is_explained = row.status.endswith(f" {UNKNOWN}") and rank(was) == rank(row.status)
        new[row.name] = was if has_not_run or is_explained else row.status
    tables[target] = new
    TABLES[table].write_text(json.dumps(tables, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def coverage_table(tables: dict[str, dict[str, str]]) -> str:
    """The committed statuses as a table for docs/coverage.md: how many kernels got how far, and why, by target."""
    targets = sorted(tables)
    titles: dict[str, Callable[[str], bool]] = {
        "emitted at least": lambda status: rank(status) >= rank("emitted"),
        "compiled at least": lambda status: rank(status) >= rank("compiled"),
        "run clean, and equal to the interpreter": lambda status: status == "correct",
        **{f"not equal: {reason.sentence}": partial(_has_reason, name) for name, reason in REASONS.items()},
        "rejected with a diagnostic": lambda status: status.startswith("refused"),
        "ended in an exception": lambda status: status == "failed",
    }
    lines = [f"| kernels | {' | '.join(targets)} |", "|---|" + "---|" * len(targets)]
    lines.append("| all | " + " | ".join(str(len(tables[target])) for target in targets) + " |")
    for title, holds in titles.items():
        counts = [sum(map(holds, tables[target].values())) for target in targets]
        if title.startswith("not equal") and not any(counts):
            continue
        lines.append(f"| {title} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def table_of_repositories(tables: dict[str, dict[str, str]], commits: Mapping[str, str]) -> str:
    """The committed statuses of other repositories' kernels: how many are emitted by repository and target, or why not.

    `commits` by owner/name; the kernels' names begin with the latter.
    """
    targets = sorted(tables)
    heads = (f"{target}: kernels | emitted | compiled | unsupported" for target in targets)
    lines = [f"| repository | commit | {' | '.join(heads)} |", "|---|---|" + "---|" * 4 * len(targets)]
    for name in (*commits, ""):
        title = f"{name} | {commits[name][:9]}" if name else "all | "
        cells = []
        for target in targets:
            found = [
                status for kernel, status in tables[target].items() if kernel.startswith(f"{name}/" if name else "")
            ]
            codes = collections.Counter(status.rpartition(" ")[2] for status in found if rank(status) < rank("emitted"))
            why = ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
            counts = (sum(rank(status) >= rank(least) for status in found) for least in ("emitted", "compiled"))
            cells += [str(len(found)), *map(str, counts), why]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _has_reason(reason: str, status: str) -> bool:
    return status.partition(" ")[2] == reason


def write_coverage(table: str) -> None:
    """Puts a table between its marks in docs/coverage.md."""
    text = COVERAGE.read_text(encoding="utf-8")
    first, last = _MARKS[table]
    head, rest = text.split(first)
    _, tail = rest.split(last)
    tables = read_tables(table)
    lines = table_of_repositories(tables, repositories()) if table == "strangers" else coverage_table(tables)
    COVERAGE.write_text(f"{head}{first}\n{lines}\n{last}{tail}", encoding="utf-8")


def report(rows: list[Row]) -> str:
    """The table for people: kernels by status, then the refusals by message."""
    counts = collections.Counter(row.status for row in rows)
    whole = {row.file for row in rows} - {row.file for row in rows if rank(row.status) < RANKS.index("emitted")}
    lines = [f"{len(rows)} kernels in {len({row.file for row in rows})} files; {len(whole)} files emitted as a whole"]
    lines += [f"{count:5}  {status}" for status, count in counts.most_common()]
    lines.append("")
    bad = sorted((row for row in rows if row.message), key=lambda row: (row.status, row.message))
    lines += [f"{row.status:18} {row.name}: {row.message[:110]}" for row in bad]
    slowest = max(rows, key=lambda row: row.seconds, default=None)
    if slowest is not None:
        lines.append(f"slowest: {slowest.name}, {slowest.seconds:.2f} s")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:sm_80")
    parser.add_argument("--table", choices=tuple(TABLES), default="examples", help="which committed table")
    parser.add_argument("--only", default="", help="files whose path has this text")
    parser.add_argument("--compile", choices=("nvcc", "g++"), default="", dest="compiler")
    parser.add_argument("--run", action="store_true", help="run on the CPU engine, compare with the interpreter")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="commit the statuses to status.json")
    parser.add_argument("--unrun", action="store_true", help="run only kernels whose committed status is `emitted`")
    parser.add_argument("--seconds", type=float, default=RUN_SECONDS, help="how long one kernel may run")
    options = parser.parse_args()
    lock = threading.Lock()

    def committed(row: Row) -> Row:
        with lock:
            write_table(options.target, [row], whole=False, table=options.table)
        return told(row)

    rows = survey(
        options.folder,
        find(options.target),
        only=options.only,
        compiler=options.compiler,
        run=options.run,
        jobs=options.jobs,
        parts={"tests": TESTS, "strangers": tuple(repositories())}.get(options.table, (".",)),
        seconds=options.seconds,
        known=read_table(options.target, options.table) if options.unrun else None,
        done=committed if options.write else told,
        style=options.table if options.table in STYLES else "tl",
    )
    print(report(rows))
    depth = "correct" if options.run and not options.unrun else "compiled" if options.compiler else "emitted"
    table = read_table(options.target, options.table)
    if options.only:
        seen = {row.name for row in rows}
        table = {name: status for name, status in table.items() if name in seen}
    worse = regressions(rows, table, depth=depth)
    print("\n".join(["", *(f"worse than committed: {line}" for line in worse)]))
    if options.write:
        write_table(options.target, rows, whole=not options.only, table=options.table)
        if options.table in _MARKS:
            write_coverage(options.table)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
