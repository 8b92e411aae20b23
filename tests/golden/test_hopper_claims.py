"""What emitted sources for Hopper claim of registers, launches and values of the launcher, computed from their text."""

import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from random import Random

import pytest
import tomllib

from tests.golden.source_text import Values, arguments, closing, value
from tests.golden.test_claims import ROOT, any_size

SOURCES = sorted(path for style in ("cute", "cuda") for path in (ROOT / "emitted" / style / "sm_90a").glob("*.cu"))
CUTE = [path for path in (ROOT / "emitted/cute").glob("*/*.cu")]
LAUNCH_DEPENDENTS = re.compile(r"launch_dependents\(\);|launch_dependent_grids\(\);")
REGISTERS, WARP, QUARTERS, UNIT = 65536, 32, 4, 8  # of an SM; allocated to warps in units of registers per thread


def joined(text: str) -> str:
    """The comments of a text as one line."""
    return " ".join(line.strip().removeprefix("//").strip() for line in text.splitlines() if "//" in line)


def head_of(text: str) -> str:
    return joined(text[: text.index("#include")])


def kernels_of(text: str) -> Iterator[tuple[str, str, str]]:
    """(name of a kernel in words, what is between it and the kernel before, its body) in the order of the source."""
    at = 0
    for found in re.finditer(r"__global__ [^;{}]*?\b(\w+)_kernel\(", text):
        start = text.index("{", closing(text, found.end() - 1))
        end = closing(text, start)
        yield found[1], text[at : found.start()], text[start:end]
        at = end


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_the_callers_next_kernel_starts_as_the_last_launched_kernel_lets_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    kernels = [(name.removeprefix(f"{path.stem}_"), body) for name, _, body in kernels_of(text)]
    starting = [name for name, body in kernels if LAUNCH_DEPENDENTS.search(body)]
    head = head_of(text)
    successor = "A kernel that the caller launches next with the PDL attribute"
    said = f"{successor} may start before the call has ended" in head
    assert (successor in head) == bool(starting)
    if not starting:
        return
    assert "must execute griddepcontrol.wait before it accesses the tensors or the workspace of the call" in head
    last = kernels[-1][0]
    if last in starting:
        assert said and f"where {last} has no blocks" not in head
        return
    assert said == (f"where {last} has no blocks" in head)
    assert said or f"{successor} starts after the blocks of {last} have exited" in head


def test_there_are_kernels_that_let_others_start() -> None:
    assert sum("that the caller launches next" in head_of(path.read_text(encoding="utf-8")) for path in SOURCES) >= 2


BOUNDS = re.compile(r"// Launch bounds: the consumers' (.*?)\n__global__ [^(]*\((threads \+ [\w:]+)", re.S)
SUM = re.compile(r"// ---- registers: (\d+) per thread for tiles.*?\n((?://.*\n)+?)(?=// (?:layout )?of [\w, ]+:)")
PRODUCERS = {"tl::producer_threads": WARP, "tl::producer_warpgroup": 4 * WARP}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_registers_of_launch_bounds_are_those_that_a_quarter_of_an_sm_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(
        r"// Launch bounds: the consumers' (.*?)\n__global__ [^(]*\((threads \+ [\w:]+)", text, re.S
    ):
        stated = re.search(r"(?:use up to|start with) (\d+) registers", joined("//" + found[1]))
        before = text[: found.start()]
        threads = int(re.findall(r"constexpr int threads = (\d+);", before)[-1])
        warps = ceil((threads + PRODUCERS[found[2].removeprefix("threads + ")]) / (WARP * QUARTERS)) * QUARTERS
        assert stated is not None
        assert int(stated[1]) == min(255, REGISTERS // (WARP * warps) // UNIT * UNIT)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_terms_of_registers_add_up(path: Path) -> None:
    for _, head, _ in kernels_of(path.read_text(encoding="utf-8")):
        found = re.search(
            r"// ---- registers: (\d+) per thread for tiles.*?\n((?://.*\n)+?)(?=// (?:layout )?of [\w, ]+:)", head
        )
        if found is None:
            continue
        total = 0
        for group in joined(found[2]).split("; "):
            names = re.split(r", | and ", re.sub(r" \d+( each)?$", "", group))
            number = re.search(r" (\d+)( each)?$", group)
            assert number is not None and bool(number[2]) == (len(names) > 1)
            total += int(number[1]) * len(names)
        assert total == int(found[1])


def test_attention_states_its_terms() -> None:
    text = (ROOT / "emitted/cute/sm_90a/attention.cu").read_text(encoding="utf-8")
    assert re.search(r"registers: 202 per thread for tiles -+\n// acc_s and acc_o 64 each; ", text)


SCHEDULED = [path for path in SOURCES if "struct Schedule {" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", SCHEDULED, ids=str)
def test_values_of_a_schedule_are_ints_for_all_sizes_that_the_launcher_takes(path: Path) -> None:
    """Python's integers do not overflow: each product, sum and difference is computed."""
    text = path.read_text(encoding="utf-8")
    struct = re.search(r"struct Schedule {\n(.*?)\n};", text, re.S)
    assert struct is not None
    code = re.sub(r"//[^\n]*", "", struct[1])
    members = dict(re.findall(r"int (\w+) =\s+(.*?);", code, re.S))
    sizes = re.search(r"^\s*int ([\w, ]+);", code, re.M)
    assert sizes is not None and members
    rejected = re.findall(r"if \(([^;{}]*)\)\s+return TL_(?:NOT_SUPPORTED|INVALID_SIZE);", text)
    constants = {name: int(number) for name, number in re.findall(r"\b(\w+) = (\d+)(?=[,;])", text)}
    random, taken, names = Random(3), 0, sizes[1].split(", ")
    for _ in range(8000):
        most = 2**31 - 8 * random.randrange(1, 64)
        given = {name: random.choice((any_size(random), 8 * random.randrange(1, 999), most)) for name in names}
        values = Values({**constants, **given}, members, random)
        if any(value(condition, values) for condition in rejected):
            continue
        taken += 1
        for definition in members.values():
            for part in (definition, *products_of(definition)):
                assert abs(int(value(part, values))) < 2**31, (part, given)
    assert taken > 100


def products_of(definition: str) -> Iterator[str]:
    """The products of two names, or of a name and brackets, in an expression."""
    for found in re.finditer(r"\b\w+ \* (?:\w+\b(?!\()|(?=\())", definition):
        text = found[0]
        if text.endswith("* "):
            text += f"({', '.join(arguments(definition, found.end()))})"
        yield text


def test_there_are_schedules_with_products() -> None:
    assert len(SCHEDULED) >= 2


@pytest.mark.parametrize("path", CUTE, ids=str)
def test_one_tiled_mma_of_tiles_with_other_extents_asserts_that_they_are_equal(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    shapes: dict[str, set[tuple[str, ...]]] = {}
    for name, shape in re.findall(r"partition_\w+_C\((\w+_mma){}, Shape<((?:Int<\w+>(?:, )?)+)>{}\)", text):
        shapes.setdefault(name, set()).add(tuple(re.findall(r"Int<(\w+)>", shape)))
    for name, found in shapes.items():
        if len(found) > 1:
            asserted = rf'using {name} =\s+decltype\(.*?\);\nstatic_assert\(\w+ == \w+,\s+"[^"]+"\);'
            assert re.search(asserted, text, re.S)


@pytest.mark.parametrize("path", CUTE, ids=str)
def test_the_version_of_cutlass_is_that_which_the_tests_install(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (installed,) = project["optional-dependencies"]["cutlass"]
    text = path.read_text(encoding="utf-8")
    stated = re.search(r"// tested with CUTLASS ([\d.]+),", text)
    assert stated is not None and installed.startswith(f"nvidia-cutlass=={stated[1]}.")
    assert " --expt-relaxed-constexpr -DNDEBUG, with -I" in " ".join(text.replace("//", "").split())


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_no_comment_above_a_visit_is_that_of_a_loop(path: Path) -> None:
    assert not re.search(r"// \w+\.py:\d+  for [^\n]*\n\s*visit\(", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_numbers_that_are_computed_from_constants_assert_these(path: Path) -> None:
    """A float whose Python formula names a constant of the source, as `scale` of `dim`."""
    text = path.read_text(encoding="utf-8")
    constants = {name: int(number) for name, number in re.findall(r"\b(\w+) = (\d+)(?=[,;])", text)}
    for formula, name, after in re.findall(r"// \w+\.py:\d+  ([^\n]*)\nconstexpr float (\w+) = [^;]*;\n([^\n]*)", text):
        for each in set(re.findall(r"[a-zA-Z_]\w*", formula)) & constants.keys():
            assert re.match(rf"static_assert\(.*\b{each} == {constants[each]}\b.*{name} is computed from", after)
