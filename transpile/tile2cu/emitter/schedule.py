"""The struct of what the launcher and the kernels both compute from the sizes."""

from collections.abc import Set

from msgspec.structs import replace

from tile2cu.chooser.numbers import Unknown, key_of, number
from tile2cu.core.expr import Expr
from tile2cu.emitter.limits import Written
from tile2cu.plan.grid_schedule import GridSchedule
from tile2cu.plan.paragraphs import groups
from tile2cu.styles.base.comments import heading, rule_line, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import NO_SECTION, Declaration, Section

_SCHEDULE = "schedule."  # in front of a member
_EXAMPLES = (4096, 2048, 3072, 5120, 6144, 8192)  # of all sizes


def with_schedule(written: Written) -> Printer:
    """A printer that has the values of a kernel, or of the launcher, from the schedule."""
    schedule, printer = written.resolved.grid_schedule, written.printer
    if schedule is None:
        return printer
    held = _members(schedule, printer)
    fields = {var: held[value] for var, value in written.resolved.scheduled.items()}
    return replace(printer, fields={**printer.fields, **fields}, derived={**printer.derived, **held})


def is_in(noted: Set[str], schedule: GridSchedule | None, printer: Printer) -> bool:
    """Whether C++ has a member of the schedule among its names, which are `noted`."""
    return schedule is not None and not noted.isdisjoint(_members(schedule, printer).values())


def declared(schedule: GridSchedule | None, printer: Printer) -> tuple[Declaration, ...]:
    """The schedule of a call's sizes."""
    if schedule is None:
        return ()
    sizes = ", ".join(printer.names(size.name) for size in schedule.sizes)
    return (Declaration(f"const Schedule schedule{{{sizes}}};"),)


def section(schedule: GridSchedule | None, printer: Printer) -> Section:
    """The struct: the sizes, and what follows from them, each under its place in the Python file."""
    if schedule is None:
        return NO_SECTION
    sizes = ", ".join(printer.names(size.name) for size in schedule.sizes)
    about = f"The launcher constructs it, and so does each thread of the kernels. {_example(schedule, printer)}"
    members = [Declaration(f"int {sizes};", tuple(wrapped(about)))]
    texts, above = _texts(schedule, printer), {}
    for group in groups(schedule.members, frozenset()):
        above[id(group[0])] = heading(group)
    for let, text in zip(schedule.members, texts, strict=True):
        comments = [*above.get(id(let), ()), *([let.trailing] if let.trailing else [])]
        members.append(Declaration(text, tuple(line for each in comments for line in wrapped(each))))
    title = "schedule: what the launcher and the kernels compute from the sizes"
    return Section(rule_line(title), tuple(members))


def _example(schedule: GridSchedule, printer: Printer) -> str:
    """The members for one size, in words: for the first of a few at which the most members are not 0."""
    names = [*_names(schedule, printer).values()]
    computed = {size: _values(schedule, size) for size in _EXAMPLES}
    size = max(_EXAMPLES, key=lambda each: sum(value != 0 for value in computed[each]))
    equal = " = ".join([*(printer.names(each.name) for each in schedule.sizes), str(size)])
    values = [f"{name} {value}" for name, value in zip(names, computed[size], strict=False)]
    return f"For example, with {equal}: {', '.join(values)}." if values else ""


def _values(schedule: GridSchedule, size: int) -> list[int]:
    """The members where all sizes are this one; none where they depend on more."""
    sizes = {key_of(each): size for each in schedule.sizes}
    try:
        return [number(value)(sizes) for value in schedule.values]
    except Unknown:
        return []


def _names(schedule: GridSchedule, printer: Printer) -> dict[Expr, str]:
    """The members' names, the same for all kernels, by their values over sizes."""
    names = Names(printer.names(size.name) for size in schedule.sizes)
    named = zip(schedule.values, schedule.members, strict=True)
    return {value: names(let.var.name) for value, let in named}


def _members(schedule: GridSchedule, printer: Printer) -> dict[Expr, str]:
    """The members as a kernel or the launcher has them."""
    return {value: f"{_SCHEDULE}{name}" for value, name in _names(schedule, printer).items()}


def _texts(schedule: GridSchedule, printer: Printer) -> list[str]:
    """The members' declarations, each by those before it."""
    texts, before = [], dict[Expr, str]()
    for value, name in _names(schedule, printer).items():
        texts.append(f"int {name} = {replace(printer, derived=before).index(value)};")
        before = {**before, value: name}
    return texts
