"""Every emitted text compiles: by nvcc without warning or spill, by g++ for the CPU, its header as plain C."""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tile2cu_runtime.compile import Build, precompiled_headers
from tile2cu_runtime.compilers import find_gxx

ROOT = Path(__file__).resolve().parents[2]
EMITTED = ROOT / "emitted" / "cuda"
TEXTS = sorted(EMITTED.rglob("*.cu"))
MMA_OF_PTX = re.compile(r"\b(wgmma|mma)(?:\.mma_async)?\.sync\.aligned\.(m\d+n\d+k\d+)(?:\.row\.col)?\.([a-z0-9.]+)")
MMA_OF_TEXT = re.compile(r"\b((?:wgmma|mma)\.m\d+n\d+k\d+\.[a-z0-9.]+) x (\d+) (?:per|by the) warp")
ENTRY = re.compile(r"Compiling entry function '(\w+)' for.*?Used (\d+) registers", re.DOTALL)
KERNEL = re.compile(r"__global__ void __launch_bounds__\([^()]*\)\s+(\w+)\(")
ACCUMULATOR = re.compile(r"V(\d+)\s+(?://\s+)?values each(?:.*\n//)*.*\nusing (\w+) =\s+tl::(?:Mma|Wgmma)Accumulator<")
SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def text_id(text: Path) -> str:
    return str(text.relative_to(EMITTED).with_suffix(""))


def arch_of(text: Path) -> str:
    """The folder below emitted/cuda is the target's architecture."""
    return text.relative_to(EMITTED).parts[0]


def compiles(command: list[str], source: str | None = None) -> str:
    """What the compiler printed, given `source` on standard input; fails the test with it when the compiler fails."""
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=600)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}\n{printed}"
    return printed


def nvcc_command(nvcc: str, arch: str, text: Path, out: Path, what: str = "-c") -> list[str]:
    return [
        nvcc, "-std=c++17", "-O3", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-Werror=all-warnings",
        "-Xcompiler=-Wall,-Wextra,-Werror", "-Xptxas=-v", f"-I{ROOT / 'headers'}", what, str(text), "-o", str(out),
    ]  # fmt: skip


def test_there_are_texts_for_sm_80() -> None:
    assert [text for text in TEXTS if arch_of(text) == "sm_80"]


def builds(text: Path) -> Iterator[str]:
    """The architectures it is built for: a text for sm_80 also for Hopper, if that has none of its own."""
    yield arch_of(text).removeprefix("sm_")
    if arch_of(text) == "sm_80" and not (EMITTED / "sm_90a" / text.relative_to(EMITTED / "sm_80")).exists():
        yield "90a"


@dataclass
class Batch:
    """Texts that one run of nvcc compiles for an architecture: the headers alone take it a second.

    Each is in a namespace of its own. That a text includes what it needs, test_gxx_compiles_for_the_cpu tests.
    """

    arch: str
    what: str
    texts: list[Path] = field(default_factory=list)

    def takes(self, text: Path) -> bool:
        """Not two texts of one kernel, and none that sets an option of the headers beside others."""
        alone = any("#define TL_" in each.read_text(encoding="utf-8") for each in (text, *self.texts))
        return not self.texts or not alone and len(self.texts) < 3 and text.stem not in {t.stem for t in self.texts}


def batches() -> list[Batch]:
    found: list[Batch] = []
    for text in TEXTS:
        for arch in builds(text):
            # Launchers are the same for each architecture: it is enough to build them once.
            what = "-c" if arch in arch_of(text) else "-cubin"
            fitting = (each for each in found if (each.arch, each.what) == (arch, what) and each.takes(text))
            batch = next(fitting, None)
            if batch is None:
                found.append(batch := Batch(arch, what))
            batch.texts.append(text)
    return sorted(found, key=lambda each: sum(text.stat().st_size for text in each.texts))


# For each change, tests/compile/test_nvrtc.py compiles a text for sm_100a, and others are for sm_80 and Hopper.
AT_NIGHT = {("sm_80", "90a"), ("sm_100a", "100a")}


@pytest.mark.sweep("target")  # of each the smallest
@pytest.mark.parametrize(
    ("target", "batch"),
    [
        pytest.param(
            f"{arch_of(each.texts[0])} on {each.arch}",
            each,
            id=f"{' '.join(map(text_id, each.texts))} on {each.arch}",
            marks=[pytest.mark.nightly] * ((arch_of(each.texts[0]), each.arch) in AT_NIGHT),
        )
        for each in batches()
    ],
)
def test_nvcc_compiles_without_warning_or_spill(target: str, batch: Batch, nvcc: str, tmp_path: Path) -> None:
    source = tmp_path / "batch.cu"
    source.write_text("".join(f'#include "{text}"\n' for text in batch.texts), encoding="utf-8")
    command = nvcc_command(nvcc, batch.arch, source, tmp_path / "kernel.o", batch.what)
    printed = compiles([*command, "-keep", "-keep-dir", str(tmp_path)])
    assert "warning" not in printed.lower()
    assert not re.search(r"\bC75\d\d\b", printed), f"ptxas serialises wgmma, or ignores setmaxnreg:\n{printed}"
    used = SPILL.findall(printed)
    assert used, f"ptxas reports no kernel:\n{printed}"
    assert all(bytes_used == ("0", "0", "0") for bytes_used in used), f"stack frame or spill:\n{printed}"
    for text in batch.texts:
        uses_the_registers_that_it_states(text.read_text(encoding="utf-8"), printed)
    if batch.what == "-c":
        (ptx,) = tmp_path.glob("*.ptx")
        kernels = ptx.read_text(encoding="utf-8").split(".entry ")[1:]
        for text in batch.texts:
            own = [each for each in kernels if any(name in each.split("(", 1)[0] for name in namespaces(text))]
            assert own, f"no kernel of {text}"
            executes_what_it_states(text.read_text(encoding="utf-8"), "".join(own))


def uses_the_registers_that_it_states(text: str, printed: str) -> None:
    """ptxas' registers of each kernel: what its threads start with, at most what it may use, and room for accumulators.

    The consumers of a warp-specialised kernel have more than they start with: setmaxnreg gives it, ptxas reports none.
    """
    start = 0
    for kernel in KERNEL.finditer(text):
        head, start = text[start : kernel.start()], kernel.end()
        body = text[start : text.index("\n}\n", start)]
        used = {int(count) for name, count in ENTRY.findall(printed) if f"{len(kernel[1])}{kernel[1]}" in name}
        assert used, f"ptxas reports nothing of {kernel[1]}"
        about = re.sub(r"\n// ", " ", head)
        if started := re.search(r"whose threads start with (\d+) registers", about):
            assert used == {int(started[1])}
            continue
        if most := re.search(r"ptxas may use up to (\d+) registers", about):
            assert max(used) <= int(most[1])
        held = [
            int(count) for count, layout in ACCUMULATOR.findall(head) if re.search(rf"<(?:float|int), {layout}>", body)
        ]
        assert min(used) >= max(held, default=0), f"{kernel[1]}: an accumulator alone takes {max(held)}"


def namespaces(text: Path) -> list[str]:
    """The namespaces of a text's kernels, as names in the PTX have them."""
    found = re.findall(r"^namespace (\w+) {", text.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{len(name)}{name}" for name in found]


def executes_what_it_states(text: str, ptx: str) -> None:
    """The tensor-core instructions of the PTX are those that comments name, as often or a multiple of that.

    An MMA stands at several places of the PTX where a pipeline has a prologue and an epilogue.
    """
    executed = Counter(f"{unit}.{shape}.{types}" for unit, shape, types in MMA_OF_PTX.findall(ptx))
    stated: dict[str, list[int]] = {}
    for name, times in MMA_OF_TEXT.findall(text):
        stated.setdefault(name, []).append(int(times))
    assert stated.keys() == executed.keys()
    for name, times in stated.items():
        others = executed[name] - sum(times)
        assert others >= 0 and others % math.gcd(*times) == 0, f"{name}: {executed[name]} times, stated {times}"


@pytest.mark.sweep(every=12)
@pytest.mark.parametrize("text", TEXTS, ids=text_id)
def test_gxx_compiles_for_the_cpu(text: Path, gxx: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each night with its optimisations, whose warnings are few; tests/host builds and runs what it parses here."""
    flags = ("-std=c++17", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror")
    command = (gxx, "-x", "c++", *flags, "-I", str(ROOT / "headers"), "-c", str(text), "-o", str(tmp_path / "kernel.o"))
    plain = "#define TL_" not in text.read_text(encoding="utf-8")  # else the headers say something else
    headers = precompiled_headers(Build(compile=command, link=(), identity=find_gxx().version)) if plain else ()
    compiles([*command, *headers, *([] if request.config.getoption("--nightly") else ["-fsyntax-only"])])


@pytest.mark.parametrize("text", TEXTS, ids=text_id)
def test_header_is_plain_c(text: Path, gxx: str) -> None:
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'headers'}", f"-I{text.parent}"]
    twice = f'#include "{text.stem}.h"\n' * 2
    compiles([gxx, "-x", "c", *flags, "-fsyntax-only", "-"], twice)
