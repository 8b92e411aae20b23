"""What was decided about a kernel, by which rule and because of which line, and what was rejected; rules in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent, indent, wrap
from typing import Any

from msgspec.structs import asdict

from tile2cu.core.expr import static_value
from tile2cu.core.facts import Fact, Facts, Rejected, Subject, name_of
from tile2cu.core.program import Buffer, Launch, Loop, Sync, While
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple
from tile2cu.emitter import Resolved
from tile2cu.emitter.fact_values import value_of
from tile2cu.rules import RULES, Rule
from tile2cu.rules.rewrites import REWRITES
from tile2cu.styles.base.vocabulary import NAMESPACE

_WIDTH = 120
# Decisions without information for a reader, or that only locate others.
_HIDDEN = ("shared_budget", "workspaces", "staging", "slices")
# The printed labels of decisions; JSON has the keys' own names.
_WORDS = {
    "warp_specialised": "producer",
    "registers": "registers per thread",
    "prologue_loads": "prologue loads",
    "persistent": "persistent kernel",
    "early_exit": "block that would write nothing",
    "streaming": "streaming access (L2 evict-first)",
    "store_last": "stored after all vectors are computed",
    "war_only": "barrier for reads alone (WAR)",
    "schedule": "software pipelining",
    "awaited_at": "in flight",
    "permutation_invariant": "elements in any order",
    "waves_per_simd": "waves per SIMD",
    "raster_group": "rows of blocks per raster group",
    "bounds_checked": "bounds-checked, per dimension",
    "row_alignment": "row alignment in bytes (0: checked at launch)",
    "row_alignment_if": "rows aligned to 16 bytes if",
    "tma_if": "TMA if",
    "vector": "elements per vector",
    "elected_writers": "threads that hold the same element",
    "reduction_warps": "warps that exchange partial results",
}


# Statements without decisions.
_AS_WRITTEN = (
    (Loop | While, "all threads run all iterations"),
    (Sync, "block barrier"),
)


class Chosen(Record, frozen=True, kw_only=True):
    """One decision: `what` is `value`, by `rule`, because of `line` of the Python file; without a rule, as written."""

    what: str
    value: str
    rule: str
    line: int


class RejectedCandidate(Record, frozen=True, kw_only=True):
    """A candidate that a rule rejected, why, and the edit that would allow it (empty for none)."""

    candidate: str
    because: str
    edit: str
    rule: str


class Explained(Record, frozen=True, kw_only=True):
    """All decisions about one subject: a launch, a tile or tensor, or a statement."""

    about: str
    line: int
    text: str
    chosen: tuple[Chosen, ...]
    refused: tuple[RejectedCandidate, ...]


def explained(resolved: Resolved) -> tuple[Explained, ...]:
    """The decisions about a launch: itself, tensors and tiles, then its statements in their order."""
    program, launch = resolved.program, resolved.launch
    tensors = [param for param in program.params if isinstance(param, Buffer)]
    subjects: list[Subject] = [launch, *tensors, *program.workspaces, *launch.tiles, *launch.statements]
    return tuple(one for subject in subjects if (one := _explained(subject, resolved.facts)) is not None)


def _explained(subject: Subject, facts: Facts) -> Explained | None:
    own = [fact for fact in facts if fact.about is subject and fact.what not in _HIDDEN]
    chosen = tuple(_chosen(fact) for fact in own if not isinstance(fact.value, Rejected) and _says_something(fact))
    refused = tuple(
        RejectedCandidate(
            candidate=fact.value.candidate, because=fact.value.because, edit=fact.value.edit, rule=fact.rule
        )
        for fact in own
        if isinstance(fact.value, Rejected)
    )
    if not chosen and not refused:
        written = next((text for kind, text in _AS_WRITTEN if isinstance(subject, kind)), "")
        if not written:
            return None
        chosen = (Chosen(what="as written", value=written, rule="", line=subject.span.line),)
    about = "launch" if isinstance(subject, Launch) else name_of(subject).strip("`")
    text = subject.span.text.strip()
    return Explained(about=about, line=subject.span.line, text=text, chosen=chosen, refused=refused)


def _says_something(fact: Fact) -> bool:
    """Whether a decision informs a reader: not "all threads", "nothing", nor a condition that always holds."""
    if isinstance(fact.value, Multiple) and static_value(fact.value.value) is not None:
        return False
    return fact.value is not None and (fact.what, str(fact.value)) not in (
        ("elected_writers", "all"),
        ("reduction_warps", "1"),
    )


def _chosen(fact: Fact) -> Chosen:
    return Chosen(what=fact.what, value=value_of(fact), rule=fact.rule, line=fact.span.line)


def as_text(kernel: str, target: str, places: Sequence[Explained]) -> str:
    """The explanation for a terminal."""
    lines = [f"{kernel} for {target}", ""]
    for place in places:
        head = f"{place.about}: " if not place.about.startswith("line ") else ""
        lines.append(f"line {place.line:<4} {head}{place.text}".rstrip())
        for one in place.chosen:
            from_line = f", line {one.line}" if one.line != place.line else ""
            stated = in_words(one)
            lines += _wrapped(f"{stated}  [{one.rule}{from_line}]" if one.rule else stated, "     ")
        for other in place.refused:
            edit = f"; to have it: {other.edit}" if other.edit else ""
            lines += _wrapped(f"not {other.candidate}: {other.because}{edit}  [{other.rule}]", "     ")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def in_words(one: Chosen) -> str:
    """A decision without its reason: `stages: 3`."""
    if one.what == "call":
        return f"{NAMESPACE}{one.value}"
    return f"{_WORDS.get(one.what, one.what)}: {one.value}"


def _wrapped(text: str, margin: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=margin, subsequent_indent=margin + "    ", break_on_hyphens=False)


def as_json(kernel: str, target: str, places: Sequence[Explained]) -> dict[str, object]:
    """The explanation for machines."""
    found = [
        {
            "about": place.about,
            "line": place.line,
            "text": place.text,
            "chosen": [asdict(one) for one in place.chosen],
            "rejected": [asdict(other) for other in place.refused],
        }
        for place in places
    ]
    return {"kernel": kernel, "target": target, "places": found}


def of_manifest(manifest: Mapping[str, Any]) -> tuple[Explained, ...]:
    """The decisions that a kernel's manifest holds, place by place; what was rejected is not among them."""
    facts = [fact for fact in manifest["facts"] if fact["value"] and fact["what"] not in _HIDDEN]
    about = {fact["about"]: [one for one in facts if one["about"] == fact["about"]] for fact in facts}
    return tuple(_recorded(name, found) for name, found in about.items())


def _recorded(about: str, facts: Sequence[Mapping[str, Any]]) -> Explained:
    """A place of the manifest: a statement's line is its name; a tile or the launch has that of its first decision."""
    of_statement = about.removeprefix("line ")
    line = int(of_statement) if of_statement.isdigit() else facts[0]["line"]
    chosen = tuple(Chosen(**{key: fact[key] for key in ("what", "value", "rule", "line")}) for fact in facts)
    return Explained(about=about, line=line, text="", chosen=chosen, refused=())


def rule_page(rule: Rule) -> str:
    """A rule's page: its documentation, its source, and its decisions in small kernels."""
    lines = [rule.id, "=" * len(rule.id), "", dedent(f"    {rule.doc}").strip(), "", f"Source: {rule.source}"]
    lines += [f"Phase: {rule.phase.name.lower()}; runs on each {' and '.join(kind.__name__ for kind in rule.on)}"]
    for example in rule.examples:
        about = f"line {example.about}" if isinstance(example.about, int) else example.about
        lines += ["", f"Example, on {example.target}:", indent(example.statements.strip(), "    ")]
        lines += [f"  {example.what} of {about}: {example.value}"]
    return "\n".join(lines) + "\n"


def rewrite_page(id: str) -> str | None:
    """The page of a rewrite of kernels that is no rule; None without such."""
    found = REWRITES.get(id)
    return f"{id}\n{'=' * len(id)}\n\n{dedent(f'    {found.__doc__}').strip()}\n" if found is not None else None


def find_rule(id: str) -> Rule | None:
    """The rule with this id."""
    return next((rule for rule in RULES if rule.id == id), None)


def rule_ids() -> Iterator[str]:
    yield from (rule.id for rule in RULES)
    yield from REWRITES


def dumps(content: object) -> str:
    return json.dumps(content, indent=1) + "\n"
