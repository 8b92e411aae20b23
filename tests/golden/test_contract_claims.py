"""What emitted sources claim of calls, MMAs and stores by TMA, computed again from their text."""

import json
import re
import struct
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, prod
from pathlib import Path
from random import Random

import pytest

from tests.golden.source_text import SIZES, Source, Values, arguments, value
from tests.golden.test_claims import ROOT, TL, any_size

HOPPER = [path for path in TL if "sm_90a" in path.parts or "sm_100a" in path.parts]
LINE = 128  # bytes: headers/tl/common/workspace.h


def about(path: Path) -> str:
    """The comments above a source's or a header's code, as one text."""
    text = path.read_text(encoding="utf-8")
    return " ".join(line.removeprefix("//").strip() for line in text.splitlines() if line.startswith("//"))


@pytest.mark.parametrize("path", TL, ids=str)
def test_heads_have_the_values_of_the_constants_that_they_use(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    constants = {name: number for kernel in source.kernels for name, number in kernel.constants.items()}
    for head in (about(path.with_suffix(".h")), source.about):
        listed = re.search(r"Compile-time constants: (.*?)\.(?: |$)", head)
        stated = dict(re.findall(r"(\w+) = ([\w.-]+)", listed[1] if listed else ""))
        rest = head.replace(listed[0], "") if listed else head
        rest = rest.partition("To change a tile size")[0]  # whose lines have each parameter's value
        rest = re.sub(r"To change it, .*? -D .*?(?=//|  |$)|\S+\.py:\S+", " ", rest, count=0)
        used = {name for name in re.findall(r"(?<![.\w-])[A-Za-z_]\w*", rest) if name in constants}
        shared = {name for name in used if name not in ("threads", "num_stages")}  # of a kernel, not of a call
        assert shared <= set(stated), shared - set(stated)
        for name, number in stated.items():
            if name != "threads" and name in constants and re.fullmatch(r"-?\d+", number):
                assert constants[name] == int(number), name


def test_a_constant_that_a_head_uses_is_listed_only_once() -> None:
    heads = {path: about(path.with_suffix(".h")) for path in TL}
    assert all(head.count("Compile-time constants: ") <= 1 for head in heads.values())
    uses = {path.stem for path, head in heads.items() if "Compile-time constants: " in head}
    assert {"linear_int4", "mla_decode", "attention", "gemm_hybrid", "flash_decoding"} <= uses


@pytest.mark.parametrize("path", TL, ids=str)
def test_workspaces_have_the_bytes_that_heads_state(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source, random = Source.of(text), Random(5)
    how = r", for any sizes|, (?:each summand )?rounded up to a multiple of 128"
    how += r"| at most; \w+_workspace_size returns how many"
    stated = re.search(rf" Workspace: (.*?) bytes({how})?\.", source.about)
    computed = re.search(rf"size_t {path.stem}_workspace_size\([^)]*\) {{(.*?)\n?}}\n", text, re.S)
    assert computed is not None
    asked = re.findall(r"tl::workspace_bytes<([\w:]+)>\(", computed[1])
    assert bool(stated) == bool(asked)
    if stated is None:
        assert "No workspace." in source.about and "return 0;" in computed[1]
        return
    terms, pairs = terms_of(re.sub(r"(?<=\d),(?=\d)", "", stated[1])), list[tuple[int, int]]()
    for _ in range(20):
        sizes = {name: random.randrange(1, 200) for name in source.sizes}
        values = Values({**source.kernels[-1].constants, **sizes}, {}, random)
        counted = [value(term, values) for term in terms]
        lines = [ceil(each / LINE) * LINE if "rounded up" in stated[2] else each for each in counted]
        pairs.append((sum(tensors_of_workspace(computed[1], values)), sum(lines)))
    if "at most" in stated[2]:
        assert max(actual for actual, _ in pairs) == pairs[0][1]
    else:
        assert all(actual == told for actual, told in pairs)


def terms_of(text: str) -> list[str]:
    """The terms of a sum."""
    depth, terms = 0, [""]
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and not depth:
            terms.append("")
        else:
            terms[-1] += letter
    return terms


def tensors_of_workspace(query: str, values: Values) -> Iterator[int]:
    """The bytes of each tensor that a query counts."""
    for found in re.finditer(r"tl::workspace_bytes<([\w:]+)>\(", query):
        extents = arguments(query, found.end() - 1)
        if extents[0].startswith("tl::non_empty_tile_counter_ints("):
            tiles = prod(value(each, values) for each in arguments(extents[0], extents[0].index("(")))
            extents = [str(1 + ceil(tiles / 31))]
        size = SIZES[found[1].removeprefix("tl::")] * prod(value(each, values) for each in extents)
        yield ceil(size / LINE) * LINE


ARGUMENT = re.compile(r"  (?:in|out|in/out)\s+\w+\s+\(([^)]*(?:\([^)]*\)[^)]*)*)\)")


@pytest.mark.parametrize("path", TL, ids=str)
def test_quotients_of_extents_that_are_extents_have_no_remainder(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source, random = Source.of(text), Random(7)
    head = text[: text.index("#include")]
    extents = {each.strip() for shape in ARGUMENT.findall(head) for each in shape.split(",")}
    quotients = [tuple(each.split(" / ")) for each in extents if re.fullmatch(r"\w+ / \w+", each)]
    constants = source.kernels[-1].constants
    for size, divisor in (pair for pair in quotients if pair[0] in extents):
        by = int(divisor) if divisor.isdigit() else constants[divisor]
        if by == 1:
            continue
        assert re.search(rf"\b{size} must be a multiple of ", source.about)
        for _ in range(50):
            values = Values({**constants, **{name: any_size(random) for name in source.sizes}}, {}, random)
            if int(values[size]) % by:  # type: ignore[call-overload]
                assert any(value(condition, values) for condition in source.rejected)


def test_there_are_kernels_with_quotients_as_extents() -> None:
    assert sum("must be a multiple of group = " in about(path) for path in TL) >= 3


MMA = re.compile(
    r"// ((?:w?g?mma\.m\d+n\d+k\d+[\w.]*(?: x \d+)?(?:, | and )?)+(?: x \d+)? per (?:warp|warpgroup)[^\n]*"
    r"(?:\n *//[^\n]*)*)\n(?:[^\n]*\.consumer_wait\([^\n]*\n)?\s*tl::(gemm\w*)\("
)


@pytest.mark.parametrize("path", [path for path in TL if path.suffix == ".cu"], ids=str)
def test_operands_of_mmas_are_where_and_as_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        fragments = {
            name
            for names in re.findall(r"tl::Fragment<[^;]*>\s+([\w,\s]+);", kernel.body)
            for name in re.findall(r"\w+", names)
        }
        for found in MMA.finditer(kernel.body):
            stated = " ".join(re.sub(r"\n *//", " ", found[1]).split())
            a, b, *_ = arguments(kernel.body, found.end() - 1)
            assert list(operand_faults(stated, found[2], a, b, fragments)) == [], stated


def operand_faults(stated: str, call: str, a: str, b: str, fragments: set[str]) -> Iterator[str]:
    """What is stated of the operands of an MMA and is not so."""
    a_transposed, b_transposed = (each.startswith("tl::transposed(") for each in (a, b))
    in_registers = re.sub(r"^tl::transposed\(|[\[)].*$", "", a) in fragments
    if stated.startswith("wgmma"):
        majors = ("M" if a_transposed else "K", "K" if b_transposed else "N")
        both = f"A and B {majors[0]}-major" if majors[0] == majors[1] else f"A {majors[0]}-major, B {majors[1]}-major"
        words = f"RS: A in registers, B {majors[1]}-major" if in_registers else f"SS: {both}"
        if words not in stated:
            yield words
        if ("complete on return" in stated) != (call == "gemm"):
            yield call
    elif " by ldmatrix" in stated:
        of_b = r"ldmatrix\.(?:x4(?: and \.x2)?|x2)" + ("" if b_transposed else r"\.trans") + r"(?![.\w])"
        of_a = r"ldmatrix\.x4" + (r"\.trans" if a_transposed else "") + r"(?![.\w])"
        both = rf"A by {of_a}, B by {of_b}" + rf"|A and B by {of_b}" * (a_transposed != b_transposed)
        words = rf"A from registers, B by {of_b}" if in_registers else both
        if not re.search(words, stated):
            yield words


def test_mmas_of_both_kinds_are_stated() -> None:
    found = [comment for path in TL for comment in MMA.findall(path.read_text(encoding="utf-8"))]
    text = "\n".join(comment for comment, _ in found)
    assert len(found) > 60 and all(words in text for words in ("SS: ", "RS: ", "B by ldmatrix", "A from registers"))


@pytest.mark.parametrize("path", TL, ids=str)
def test_grids_are_as_stated(path: Path) -> None:
    source, text = Source.of(path.read_text(encoding="utf-8")), path.read_text(encoding="utf-8")
    host, random = text[text.index("// ---- host") :], Random(9)
    launched = [*re.finditer(r"const dim3 (grid|tiles)\(", host)]
    assert len(launched) == len(source.kernels)
    for kernel, launch in zip(source.kernels, launched, strict=True):
        words = re.sub(r"\n// ", " ", kernel.head[kernel.head.rindex("// grid: ") :])
        assert ("loop over `tiles`" in words.split("\n")[0]) == (launch[1] == "tiles")
        stated = arguments(words, words.index("("))
        block = host[max(host.rfind("{", 0, launch.start()), 0) : launch.start()]
        named = dict(re.findall(r"const int (\w+) = ([^;]+);", block))
        actual = arguments(host, launch.end() - 1)
        for _ in range(30):
            sizes = {name: random.randrange(1, 5000) for name in source.sizes}
            values = Values({**kernel.constants, **sizes}, named, random)
            assert [value(each, values) for each in stated] == [value(each, values) for each in actual]


@pytest.mark.parametrize("path", HOPPER, ids=str)
def test_kernels_that_start_early_are_named(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source = Source.of(text)
    stated = re.search(r"Programmatic dependent launch: (.*?\.) (?=[A-Z]\w+ (?!may|execute))", source.about)
    words = stated[1] if stated else ""
    kernels = dict(zip(re.findall(r"\w+_kernel\(", text), source.kernels, strict=False))
    waiting = [kernel for kernel in kernels.values() if "tl::griddepcontrol_wait()" in kernel.body]
    starting = [kernel for kernel in kernels.values() if "tl::griddepcontrol_launch_dependents()" in kernel.body]
    of_caller = bool(starting) and "the caller's next kernel starts after" not in words
    assert words.count(" may start before ") == len(waiting) + of_caller
    assert ("griddepcontrol.launch_dependents" in words) == bool(starting)


STAGES_ROWS = re.compile(r"in\s+(?://\s+)?boxes\s+(?://\s+)?of\s+(?://\s+)?(\d+)\s+(?://\s+)?x\s+(?://\s+)?(\d+)")


@pytest.mark.parametrize("path", HOPPER, ids=str)
def test_boxes_that_warps_store_are_those_of_the_staging_tile(path: Path) -> None:
    box = (ROOT / "headers/tl/common/sm90/boxes.h").read_text(encoding="utf-8")
    rows = re.search(r"BoxRows<StagingTile<.*?value = (\d+);", box, re.S)
    assert rows is not None
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        tiles = re.findall(r"tl::StagingTile<([\w:]+), [^,]+, ([^,]+), tl::Swizzle(\d+)B> (\w+);", kernel.head)
        stated = STAGES_ROWS.search(kernel.body)
        if stated is None:
            continue
        values = Values(kernel.constants, {}, Random(0))
        slabs = {
            min(int(swizzle) // SIZES[element.removeprefix("tl::")], value(columns, values))
            for element, columns, swizzle, _ in tiles
        }
        assert int(stated[1]) == int(rows[1]) and int(stated[2]) in slabs


@pytest.mark.parametrize("path", TL, ids=str)
def test_guards_are_described_for_what_the_kernel_does(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        guarded = {
            found[1]
            for found in re.finditer(
                r"const auto \w+ =\s+tl::\w+<[^;]*?>\(\s*(\w+)_data, [^;]*tl::predicated", kernel.body
            )
        }
        written = {
            name.removesuffix("_data") for kind, name in kernel.parameters if "*" in kind and "const" not in kind
        }
        words = " ".join(re.findall(r"// (.*)", kernel.body.split("const auto", 1)[0]))
        assert ("predicated: " in words) == bool(guarded)
        assert ("out-of-bounds elements are not stored" in words) == bool(guarded & written)
        assert guarded <= written or "out-of-bounds loads return zero" in words


@pytest.mark.parametrize("path", HOPPER, ids=str)
def test_registers_of_a_consumer_are_those_that_setmaxnreg_gives(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        stated = re.search(r"of (\d+) that setmaxnreg gives a consumer", kernel.head)
        assert (int(stated[1]) if stated else None) == (
            kernel.constants["consumer_registers"] if "consumer_registers = " in kernel.head else None
        )


@pytest.mark.parametrize("path", TL, ids=str)
def test_the_legend_explains_what_comments_have(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    head, code = text[: text.index("#include")], text[text.index("#include") :]
    assert "// In comments, [name] is the rule of a decision" in head
    shown = " ".join(re.findall(r"// ?(.*)", code))
    assert ("A TV layout is CuTe's" in " ".join(head.replace("\n// ", " ").split())) == ("TV layout (" in shown)


def test_places_where_nan_becomes_a_constant_are_of_the_file() -> None:
    places = 0
    for path in TL:
        for constant, file, lines in re.findall(r"NaN becomes ([\w.-]+) at (\w+\.py):([\d, and]+)\.", about(path)):
            code = (ROOT / "examples" / file).read_text(encoding="utf-8").splitlines()
            for line in map(int, re.findall(r"\d+", lines)):
                assert (
                    re.search(r"T\.(max|min|clamp)\(", code[line - 1])
                    and constant.lstrip("-").rstrip("0.") in code[line - 1]
                )
                places += 1
    assert places > 5


READ = re.compile(r"// read from global memory in each iteration, not prefetched: ([^\n]*)\n")


def test_tensors_that_a_pipelined_loop_reads_itself_are_named() -> None:
    """They are views of global memory that the loop over elements behind the comment indexes."""
    found = 0
    for path in TL:
        for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
            views = {view.name for view in kernel.views()}
            for said in READ.finditer(kernel.body):
                loop = kernel.body[said.end() : kernel.body.index("\n\n", said.end())]
                names = set(re.split(r", | and ", said[1]))
                assert names <= views and all(re.search(rf"\b{name}\(", loop) for name in names)
                found += 1
    assert found >= 2


AMD = sorted((ROOT / "emitted").glob("**/gfx942/**/*.json"))
_STEPS = re.compile(
    r"ascending steps of (\d+), each (\d+) v_mfma_f32_(\d+)x\d+x(\d+)_\w+ "
    r".* takes (\d+) i to .* of every (\d+) k"
)
_FIRST = re.compile(r"int first\(int k, int p\) \{ return (.*?); \}")


def test_mfmas_take_the_k_that_manifests_state() -> None:
    """By tl::MfmaK: the k of value `first` of a step's items, of each group of lanes."""
    header = (ROOT / "headers/tl/common/cdna/mfma_gemm.h").read_text(encoding="utf-8")
    formula = _FIRST.search(header)
    assert formula is not None and "first += Steps::each" in header
    python = re.sub(r"Shape::|lane\(\) / size", "", formula[1].replace("lane() / Shape::size", "group"))
    orders = {order for path in AMD for order in json.loads(path.read_text(encoding="utf-8"))["numerics"]["order"]}
    checked = 0
    for extent, count, size, depth, each, of in (map(int, m.groups()) for m in map(_STEPS.search, orders) if m):
        groups = 64 // size
        assert each == depth // groups and count * each == of and extent == of * groups
        fixed = {"k": 0, "p": 0, "piece": of, "groups": groups}
        first = [eval(python, {}, {**fixed, "group": group}) for group in range(groups)]
        of_number = [{k + each * i + e for k in first for e in range(each)} for i in range(count)]
        assert set().union(*of_number) == set(range(extent))
        assert all(k % of // each == i for i, own in enumerate(of_number) for k in own)
        checked += 1
    assert checked


def test_a_layout_of_ck_s_own_has_no_rule() -> None:
    """B of a GEMM with N along its rows is transposed as it is stored: no swizzle that a rule decides."""
    folder = ROOT / "emitted/ck/gfx942"
    (fact,) = (
        fact
        for fact in json.loads((folder / "gemm_relu.json").read_text(encoding="utf-8"))["facts"]
        if (fact["about"], fact["what"]) == ("B_shared", "layout")
    )
    source = re.sub(r"\s+// ", " ", (folder / "gemm_relu.hip").read_text(encoding="utf-8"))
    assert fact["rule"] == "" and fact["value"] in source and "swizzle" not in fact["value"]


def rounded_to_float(number: float) -> Fraction:
    """A number in float32."""
    return Fraction(struct.unpack("f", struct.pack("f", number))[0])


def test_scores_below_the_stated_bound_have_finite_weights() -> None:
    """acc_s * scale - max * scale as an FMA: the product of the maximum alone is rounded."""
    stated = re.search(
        r"score \* scale is\s+less than 2\*\*(\d+) in magnitude",
        (ROOT / "examples/attention.py").read_text(encoding="utf-8"),
    )
    assert stated is not None
    random = Random(7)
    scale, worst = rounded_to_float(1.44269504 * 128**-0.5), Fraction(0)
    for _ in range(2000):
        score = rounded_to_float(random.uniform(0.9, 1) * 2 ** int(stated[1]) / float(scale))
        product = score * scale
        rounded = Fraction(struct.unpack("f", struct.pack("f", float(product)))[0])
        worst = max(worst, abs(product - rounded))
    assert Fraction(1, 4) < worst <= Fraction(1, 2)


@pytest.mark.parametrize("path", [path for path in TL if path.suffix == ".hip"], ids=str)
def test_buffer_loads_that_are_not_tested_reach_any_tile(path: Path) -> None:
    """For all heads that launchers accept, tiles of rows of all heads are within the 2^31 bytes of a buffer."""
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        body = re.sub(r"\s+// ", " ", kernel.body)
        if "tl::load_buffer(" not in body:
            assert "They are buffer loads. " not in body
            assert "(tested)" in body or "buffer loads" not in body
            continue
        most, spans = {**kernel.constants, "heads": 65535}, list[int]()
        for view, extents in re.findall(r"const auto (\w+) = tl::tensor<[^(]*?>\(\w+, (.*?)\);", body):
            if re.search(rf"tl::load_buffer\({view}\(", body):
                rows = kernel.constants["block_N"]  # of K and V
                after = extents.split(", ")[2:]
                pitch = prod(int(value(extent, Values(most, {}, Random(0)))) for extent in after)
                spans.append(rows * pitch * 2 + kernel.constants["dim"] * 2)
        stated = re.search(r"32 bits: they are less than ([\d,]+) for all sizes", body)
        assert stated is not None and int(stated[1].replace(",", "")) == max(spans) < 1 << 31


@pytest.mark.parametrize("path", HOPPER, ids=str)
def test_a_source_asserts_that_a_block_has_the_registers_that_setmaxnreg_gives(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    shares = re.findall(r"int producer_registers = (\d+), consumer_registers = (\d+);", text)
    assert text.count("consumer_registers = ") == text.count("(65536 / (") == text.count("registers of a block: ")
    for producer, consumer in shares:
        threads = int(re.findall(r"constexpr int threads = (\d+);", text)[0])
        assert threads * int(consumer) + 128 * int(producer) <= (threads + 128) * (65536 // (threads + 128) // 8 * 8)


def test_documentation_that_only_restates_the_formula_is_left_out() -> None:
    alone, more = (about(ROOT / "emitted/cuda/sm_90a" / name) for name in ("gemm_relu.cu", "gemm_clusters.cu"))
    assert "C = relu(A @ B)." not in alone
    assert "C = relu(A @ B). Block `part`" in more


def test_the_example_of_split_tiles_is_that_of_its_numbers() -> None:
    """The iterations that examples/gemm_hybrid.py states for 56 split tiles, 132 blocks and 128 iterations."""
    lines = (Path(__file__).parents[2] / "examples/gemm_hybrid.py").read_text(encoding="utf-8").splitlines()
    text = " ".join(line.strip(" #") for line in lines if line.lstrip().startswith("#"))
    numbers = re.findall(r"With (\d+) split tiles, (\d+) blocks and (\d+) iterations", text)[0]
    tiles, blocks, iterations = map(int, numbers)
    of_own, spare = divmod(blocks, tiles)
    each = -(-tiles // spare)
    per_part = -(-iterations * each // (1 + of_own * each))
    first, second = f"0 to {per_part - 1}", f"{per_part} to {2 * per_part - 1}"
    rest = f"{spare} spare blocks {2 * per_part} to {iterations - 1} of {tiles // spare} or {each} tiles"
    assert f"{of_own} x {tiles} blocks compute the iterations {first} and {second} of a tile, {rest}" in text
    assert (iterations - of_own * per_part) * each <= per_part
