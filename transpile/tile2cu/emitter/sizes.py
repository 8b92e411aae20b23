"""The sizes of a kernel that its text names: the user's, pipelines' depths, threads, and registers."""

from collections.abc import Collection, Iterator, Set
from pathlib import PurePath

from msgspec.structs import replace

from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import (
    INSTRUCTION,
    PIPELINE,
    REGISTER_SHARES,
    SCHEDULE,
    STAGES,
    WARPS,
    WAVES_PER_SIMD,
)
from tile2cu.core.expr import Binary, Call, Const, Expr, Named, static_value, walk
from tile2cu.core.program import Gemm, Loop, Program
from tile2cu.core.schedule import MmaInFlight, Pipeline
from tile2cu.core.user_file import Constant, Derived
from tile2cu.emitter.tma import producer_loop
from tile2cu.plan.grid import kernel_expressions
from tile2cu.plan.launch_bounds import asked_blocks, registers_of_thread
from tile2cu.plan.occupancy import workgroups
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import ping_pong_of
from tile2cu.styles.base.comments import WIDTH, ascii_only, file_of, listed, rule_line, wrapped
from tile2cu.styles.base.constants import WRITTEN_STAGES, Constants
from tile2cu.styles.base.expressions import Printer, literal
from tile2cu.styles.base.names import ascii_name
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.base.vocabulary import NAMESPACE

_FULL_COL = "warps.gemm.full-col"
_IN_A_STRING = str.maketrans({'"': "'", "\\": "/", "\n": " "})
_INTEGER_ARITHMETIC = ("+", "-", "*", "//", "%")


def common_sizes(resolved: Resolved, printer: Printer, noted: Set[str], on_host: Set[str] | None) -> Section:
    """The static numbers that the text names and that its kernels share; none where there is one kernel.

    `noted` are the names of the rest of the text: of a number that it does not name, compilers would warn. `on_host`
    are those of them that compilations for the host see, where these see no bodies.
    """
    declared = _constants(resolved, printer, noted, on_host) if resolved.namespace else ()
    return Section(rule_line("sizes"), tuple(declared))


def sizes(
    resolved: Resolved, printer: Printer, noted: Set[str], on_host: Set[str] | None, tiles: int, operands: int
) -> Section:
    """The static numbers of a kernel: its pipelines' stages, the block's threads, and all others if it is alone.

    A thread has registers for `tiles`, and in a GEMM for `operands` that it has read from LDS.
    """
    declared = [] if resolved.namespace else [*_constants(resolved, printer, noted, on_host)]
    depths = Constants.of(resolved, printer.names)
    declared += [*_stages(resolved, depths), *_written_stages(resolved), *_loads(resolved, depths)]
    declared += _threads(resolved, _unbounded_occupancy(resolved, tiles, operands))
    declared += [*_register_shares(resolved), *_waves_per_simd(resolved, tiles, operands), *_least_blocks(resolved)]
    return Section(rule_line("sizes"), tuple(declared))


def _threads(resolved: Resolved, occupancy: tuple[str, ...]) -> Iterator[Declaration]:
    """The threads of the block, or of its groups; `occupancy` is about the workgroups of a CU."""
    launch = resolved.launch
    if launch.shares:
        about = "of each group; groups work independently: T.ws"
        yield Declaration(f"constexpr int threads[] = {{{', '.join(map(str, launch.shares))}}};", (about,))
        total = " + ".join(f"threads[{group}]" for group in range(launch.groups))
        yield Declaration(f"constexpr int block_threads = {total};")
        return
    yield Declaration(f"constexpr int threads = {launch.threads};", (*_threads_about(resolved), *occupancy))
    if launch.groups > 1:
        about = "of so many threads each, which work independently: T.ws"
        yield Declaration(f"constexpr int groups = {launch.groups}, block_threads = threads * groups;", (about,))


def _constants(resolved: Resolved, printer: Printer, noted: Set[str], on_host: Set[str] | None) -> list[Declaration]:
    """Those that are named; [[maybe_unused]] where compilations for the host see none of a declaration's names."""
    with printer.names.noted() as read:
        declared = [*_named(resolved, printer, noted)]
    if on_host is None:
        return declared
    needed = on_host | read
    unused = (not needed >= set(each.declares) for each in declared)
    return [
        replace(each, text=f"[[maybe_unused]] {each.text}") if is_unused else each
        for each, is_unused in zip(declared, unused, strict=True)
    ]


def _named(resolved: Resolved, printer: Printer, noted: Set[str]) -> Iterator[Declaration]:
    own = printer.names.in_comments  # to declare a name is not to read it
    constants = [c for c in resolved.program.constants if c.name != "threads" or resolved.namespace]
    named = {c.name for c in constants if own(c.name) in noted}
    for constant in reversed(constants):
        if constant.name in named:
            named |= _inputs(constant)
    arguments = [c for c in constants if c.name in named and not c.formula and not c.comment]
    yield from _grouped(arguments, printer)
    declared = {c.name for c in arguments}
    asserted = {printer.in_comments.condition(each.condition) for each in resolved.program.decided if each.asserted}
    for constant in constants:
        if constant.name in named and (constant.formula or constant.comment):
            inputs = [c for c in constants if c.name in declared and c.name in constant.inputs]
            yield _constant(constant, printer, inputs, asserted)
            declared.add(constant.name)
    yield from _legal(resolved.program, printer, declared)


def _legal(program: Program, printer: Printer, declared: Collection[str]) -> Iterator[Declaration]:
    """What the program asserts of `declared` constants, or depends on: an edit that breaks it is an error."""
    for each in program.decided:
        if {part.name for part in walk(each.condition) if isinstance(part, Named)} <= set(declared):
            place = f"{PurePath(each.span.file).name}:{each.span.line}"
            other = f"this decided a branch at {place}: regenerate this file for other values"
            message = each.message if each.asserted else other
            said = f', "{ascii_only(message).translate(_IN_A_STRING)}"' if message else ""
            yield Declaration(f"static_assert({printer.condition(each.condition)}{said});")


def _inputs(constant: Constant) -> set[str]:
    """The constants that one is computed from by integer arithmetic; none for other constants."""
    if constant.computed is None:
        return set()
    parts = tuple(walk(constant.computed))
    arithmetic = all(
        isinstance(part, Const | Named)
        or (isinstance(part, Binary) and part.op in _INTEGER_ARITHMETIC)
        or (isinstance(part, Call) and part.function == "ceildiv")
        for part in parts
    )
    return {part.name for part in parts if isinstance(part, Named)} if arithmetic else set()


def _register_shares(resolved: Resolved) -> Iterator[Declaration]:
    """How many registers threads have, where they are not shared evenly."""
    shares = resolved.facts.get(resolved.launch, REGISTER_SHARES)
    if shares is not None:
        rule = resolved.facts.rule(resolved.launch, REGISTER_SHARES)
        about = (
            f"registers per thread: setmaxnreg moves most of the producer warpgroup's share to the consumers  [{rule}]"
        )
        text = f"constexpr int producer_registers = {shares.producer}, consumer_registers = {shares.consumer};"
        producer = f"{NAMESPACE}producer_warpgroup"
        text += (
            "\n// A block is launched with a multiple of 8 registers per thread, which setmaxnreg distributes anew.\n"
            f"static_assert(threads * consumer_registers + {producer} * producer_registers <=\n"
            f"                  (threads + {producer}) *\n"
            f"                      ({resolved.target.registers_of_block} / (threads + {producer}) / 8 * 8),\n"
            '              "registers of a block: regenerate this file");'
        )
        yield Declaration(text, tuple(wrapped(about)))


def _waves_per_simd(resolved: Resolved, tiles: int, operands: int) -> Iterator[Declaration]:
    """For how many waves of an AMD SIMD the compiler leaves registers, and what then limits the occupancy."""
    waves = resolved.facts.get(resolved.launch, WAVES_PER_SIMD)
    if waves is not None:
        rule, most = resolved.facts.rule(resolved.launch, WAVES_PER_SIMD), resolved.target.max_registers
        about = f"at most {most // waves} registers per thread, of a SIMD's {most} per lane: clang "
        about += f"{resolved.target.clang} then keeps MFMA accumulators in VGPRs, without moves to or from AccVGPRs  "
        about += f"[{rule}]"
        text = f"constexpr int waves_per_simd_by_registers = {waves};"
        yield Declaration(text, (*wrapped(about), *wrapped(_occupancy(resolved, waves, tiles, operands))))


def _unbounded_occupancy(resolved: Resolved, tiles: int, operands: int) -> tuple[str, ...]:
    """The occupancy of a kernel with MFMAs whose bounds ask for no number of waves."""
    launch, facts = resolved.launch, resolved.facts
    has_mfma = any(facts[op, INSTRUCTION].is_mfma for op in statements(launch.body, Gemm))
    if not resolved.target.is_amd or not has_mfma or facts.get(launch, WAVES_PER_SIMD) is not None:
        return ()
    limit, most = registers_of_thread(resolved), resolved.target.max_registers
    about = f"at most {limit} registers per thread, of a SIMD's {most} per lane, AccVGPRs among them"
    return (*wrapped(about), *wrapped(_occupancy(resolved, most // limit, tiles, operands)))


def _occupancy(resolved: Resolved, waves: int, tiles: int, operands: int) -> str:
    """The workgroups of a CU, by its registers and by its LDS."""
    found = workgroups(resolved, waves, tiles + operands)
    least, most, by_lds = found.least, found.most, found.by_lds
    of_registers = f"{least} to {most}" if most > least else f"{least}"
    taken = f"tiles take {tiles}{f', operands up to {operands}' * bool(operands)}"
    text = f"workgroups per CU: {of_registers} by registers ({taken})"
    if by_lds is None:
        return text
    if least == by_lds == most:
        limited = f"{by_lds}, limited by both"
    elif by_lds <= least:
        limited = f"{by_lds}, limited by LDS"
    elif by_lds >= most:
        limited = f"{of_registers}, limited by registers"
    else:
        limited = f"{least} to {by_lds}, as the compiler assigns registers"
    return f"{text}, {by_lds} by LDS: {limited}"


def _least_blocks(resolved: Resolved) -> Iterator[Declaration]:
    """The blocks per SM that the user asks for."""
    if blocks := asked_blocks(resolved):
        about = "minimum blocks per SM: limits the registers per thread"
        yield Declaration(f"constexpr int least_blocks = {blocks};", (about,))


def _grouped(constants: list[Constant], printer: Printer) -> Iterator[Declaration]:
    """Arguments of one type and origin in one declaration, in the order in which they were given."""
    for origin, cpp in dict.fromkeys((_taken_from(constant), constant.dtype.cpp) for constant in constants):
        group = [each for each in constants if (_taken_from(each), each.dtype.cpp) == (origin, cpp)]
        names = [*map(printer.names.in_comments, (each.name for each in group))]
        values = ", ".join(f"{name} = {literal(c.value, c.dtype)}" for name, c in zip(names, group, strict=True))
        yield Declaration(f"constexpr {cpp} {values};", (f"from the {origin}",) if origin else (), tuple(names))


def _taken_from(constant: Constant) -> str:
    """The place in the user's file that gave an argument its value, where neither -D nor its own default did."""
    return "" if constant.origin in ("", "-D", "default") else constant.origin


def _constant(constant: Constant, printer: Printer, named: list[Constant], stated: Collection[str]) -> Declaration:
    """A constant; as an expression where it is computed from declared ones, and its quotients are exact.

    Where it is a number, those that its formula has are asserted: `named` are those that are declared. `stated` are
    conditions that the file asserts itself.
    """
    comments, own = wrapped(constant.comment) if constant.comment else [], printer.names.in_comments
    value, asserted, formula = literal(constant.value, constant.dtype), "", constant.formula
    inputs = _inputs(constant)
    if constant.computed is not None and inputs and inputs <= {each.name for each in named}:
        value = printer.text(constant.computed)
        divisions = dict.fromkeys(_remainder(part, printer) for part in walk(constant.computed) if _is_quotient(part))
        asserted, formula = "".join(f"\nstatic_assert({each});" for each in divisions if each not in stated), ""
    elif not constant.dtype.is_int:
        given = [each for each in named if each.dtype.is_int]
        equal = " && ".join(f"{printer.names(each.name)} == {literal(each.value, each.dtype)}" for each in given)
        from_ = listed([own(each.name) for each in given])
        message = f"{own(constant.name)} is computed from {from_}: regenerate this file"
        asserted = f'\nstatic_assert({equal}, "{message}");' if equal else ""
    if constant.formula:
        shown = f"  {formula}" if formula not in ("", str(constant.value)) else ""
        comments += wrapped(f"{file_of(constant)}:{constant.span.line}{shown}")
    text = f"constexpr {constant.dtype.cpp} {own(constant.name)} = {value};{asserted}"
    return Declaration(text, tuple(comments), (own(constant.name),))


def _is_quotient(part: Expr) -> bool:
    """Whether an integer quotient is exact: the tiles made of it then cover what is divided."""
    return isinstance(part, Binary) and part.op == "//" and static_value(replace(part, op="%")) == 0


def _remainder(part: Expr, printer: Printer) -> str:
    """The condition under which a quotient is exact."""
    assert isinstance(part, Binary)
    return f"{printer.text(replace(part, op='%'))} == 0"


def _stages(resolved: Resolved, constants: Constants) -> Iterator[Declaration]:
    """The depth of each pipeline, unless the user's own `num_stages` names it."""
    name = constants.depth
    named = {c.value for c in resolved.program.constants if c.name == name}
    depths: dict[int, tuple[str, str]] = {}
    for loop, pipeline in resolved.pipelines:
        if pipeline.stages not in named:
            depths.setdefault(pipeline.stages, (_depth_about(loop, pipeline), resolved.facts.rule(loop, PIPELINE)))
    for stages, (text, rule) in depths.items():
        about = tuple(wrapped(f"{text}  [{rule}]", WIDTH - len("// ")))
        yield Declaration(f"constexpr int {constants.stages(stages)} = {stages};", about)
    several = (each for _, each in resolved.pipelines if not each.producer and each.stages > 1)
    for name in sorted({constants.stages(each.stages) for each in several}):
        yield Declaration(f'static_assert({name} >= 2, "one tile is used while others load or are stored");')


def _loads(resolved: Resolved, constants: Constants) -> Iterator[Declaration]:
    """The loads per thread and iteration, where loads bypass the registers and are counted."""
    counts = {each.direct: loop for loop, each in resolved.pipelines if each.direct is not None}
    for count, stmt in counts.items():
        about = "loads of 16 bytes, directly to the LDS, that a thread issues per iteration; waits count them"
        text = f"constexpr int {constants.loads(count)} = {count};"
        yield Declaration(text, tuple(wrapped(f"{about}  [{resolved.facts.rule(stmt, PIPELINE)}]")))


def _written_stages(resolved: Resolved) -> Iterator[Declaration]:
    """The stages of tiles that an iteration writes while the MMA of the previous one reads others."""
    for loop in statements(resolved.launch.body, Loop):
        found = resolved.facts.get(loop, SCHEDULE)
        if isinstance(found, MmaInFlight) and found.written:
            rule, slots = resolved.facts.rule(loop, SCHEDULE), resolved.facts[found.written[0], STAGES]
            about = f"one stage that the MMA in flight reads, one that is written  [{rule}]"
            yield Declaration(f"constexpr int {WRITTEN_STAGES} = {slots};", (about,))
            return


def _depth_about(loop: Loop, pipeline: Pipeline) -> str:
    """A pipeline's prefetch distance, and why it is shorter than asked for."""
    fewer = f"{loop.stages_asked} are asked for and do not fit: " if loop.stages_asked else ""
    return fewer + _ahead_about(pipeline)


def _ahead_about(pipeline: Pipeline) -> str:
    if pipeline.staged:
        stored = ", one is stored for the next iteration" if pipeline.stages > 1 else ""
        return f"{pipeline.depth} stages, the last in registers: one tile is used{stored}, one is loaded"
    if pipeline.producer:
        stages = {1: "one stage"}.get(pipeline.stages, f"{pipeline.stages} stages")
        who = "the producer" if pipeline.gathers else "TMA"
        return f"{who} fills up to {stages} before iteration 0, then each stage that the consumers have released"
    ahead = pipeline.stages - 1
    tiles = {0: "no tile", 1: "one tile"}.get(ahead, f"{ahead} tiles")
    return f"{tiles} in flight while one is used"


def _threads_about(resolved: Resolved) -> tuple[str, ...]:
    """The number of warps, and how they partition the tiles of GEMMs."""
    count, rest = divmod(resolved.launch.threads, resolved.target.warp_size)
    if rest:
        return ("independent of each other: not a multiple of the warp size",)
    found = producer_loop(resolved)
    if found is not None and ping_pong_of(resolved) is not None:
        return (f"{count} warps, in 2 warpgroups that alternate  [{resolved.facts.rule(found[0], SCHEDULE)}]",)
    found_splits: dict[tuple[int, int], list[str]] = {}
    rules: list[str] = []
    for op in statements(resolved.launch.body, Gemm):
        if (warps := resolved.facts.get(op, WARPS)) is not None:
            found_splits.setdefault((warps.m, warps.n), []).append(ascii_name(op.c.buffer.name))
            rules.append(resolved.facts.rule(op, WARPS))
    noun = _waves(resolved, count)
    if resolved.namespace:
        noun = f"a {'workgroup' if resolved.target.is_amd else 'block'} of {resolved.namespace} has {noun}"
    if not found_splits:
        return (noun,)
    alone = len(found_splits) == 1
    splits = [
        f"{m} along M by {n} along N of {'the tile' if alone else listed([*dict.fromkeys(tiles)])}"
        for (m, n), tiles in found_splits.items()
    ]
    why = "; FullCol: as many along N as possible" if {*rules} == {_FULL_COL} else ""
    return tuple(wrapped(f"{noun}: {', '.join(splits)}{why}  [{', '.join(dict.fromkeys(rules))}]"))


def _waves(resolved: Resolved, count: int) -> str:
    """So many warps, or AMD's waves, in words."""
    noun = "wave" if resolved.target.is_amd else "warp"
    return f"{count} {noun}{'s' * (count != 1)}"


def derived_sizes(resolved: Resolved, taken: Collection[str]) -> tuple[Derived, ...]:
    """The sizes that the file computes from others and the kernel uses, whose names nothing else has."""
    parts = {part for expr in kernel_expressions(resolved) for part in walk(expr)}
    found: dict[Expr, Derived] = {}
    for each in resolved.program.derived:
        once = sum(other.name == each.name for other in resolved.program.derived) == 1
        if once and each.name not in taken and each.value in parts:
            found.setdefault(each.value, each)
    return tuple(found.values())


def sizes_with_names(derived: tuple[Derived, ...], printer: Printer, noted: Set[str]) -> tuple[Declaration, ...]:
    """Declarations of those that are `noted` as names of a kernel's text, or that one of them is computed from."""
    named = {each.value: printer.names.in_comments(each.name) for each in derived}
    needed, declared = {*noted}, list[Declaration]()
    for each in reversed(derived):
        name = named.pop(each.value)
        if name in needed:
            with printer.names.noted() as of_value:
                value = replace(printer, derived=dict(named)).text(each.value)
            needed |= of_value
            declared.insert(0, Declaration(f"const {each.value.dtype.cpp} {name} = {value};"))
    return tuple(declared)
