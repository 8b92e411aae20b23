"""docs/rules.md, written from the tables of passes and rules: `python tools/rules_doc.py > docs/rules.md`."""

from __future__ import annotations

import textwrap
from itertools import groupby

from tile2cu.passes import ASKED, FOR_PRODUCERS, GATHER_ROWS, PREPARATION, Pass
from tile2cu.rules import RULES, Rule
from tile2cu.rules.engine import Example

HEAD = """\
# Passes and rules

What tile2cu may do to a kernel, in the order in which it is tried. A pass rewrites the program where the dependence
graph allows it; a rule states decisions that the emitted source names in brackets: `[pipeline.loop.tma]`. `tile2cu
explain FILE` shows them for a kernel, with what would change them.

This page is written by `tools/rules_doc.py` from `passes/__init__.py` and `rules/__init__.py`; a test compares.
"""
_WIDTH = 120


def page() -> str:
    """The whole page: the passes, then the rules phase by phase."""
    parts = [HEAD, "\n## Passes\n"]
    found: dict[str, Pass] = {}
    for each in (*PREPARATION, *FOR_PRODUCERS, GATHER_ROWS):
        found.setdefault(each.name, each)
    parts += [f"\n### {name}\n\n{_text(_pass_doc(each))}\n" for name, each in found.items()]
    parts += [f"\n### {name}\n\n{_text(what)}\n" for name, what in ASKED.items()]
    for phase, rules in groupby(sorted(RULES, key=lambda rule: rule.phase), key=lambda rule: rule.phase):
        parts.append(f"\n## Rules: {phase.name.lower()}\n")
        parts += map(_entry, rules)
    return "".join(parts)


def _pass_doc(each: Pass) -> str:
    function = each.run
    doc = function.__doc__ or ""
    return doc or "Operations on whole tiles in branches on the thread are done by all threads that share the tile."


def _entry(rule: Rule) -> str:
    reads = ", ".join(sorted({key.name for key in (*rule.reads, *rule.absent)})) or "nothing"
    writes = ", ".join(sorted({key.name for key in rule.writes}))
    facts = _text(f"Reads: {reads}. Decides: {writes}. Source: {rule.source}.")
    return f"\n### {rule.id}\n\n{_text(rule.doc)}\n\n{facts}\n" + (_example(rule.examples[0]) if rule.examples else "")


def _example(example: Example) -> str:
    about = f"line {example.about}" if isinstance(example.about, int) else f"`{example.about}`"
    head = f"{example.what} of {about} is {example.value} ({example.target}, {example.threads} threads)"
    return f"\n{_text(f'In this body, {head}:')}\n\n```python\n{example.statements.strip()}\n```\n"


def _text(doc: str) -> str:
    """Paragraphs, filled; indented ones are code."""
    parts = textwrap.dedent("    " + doc).strip().split("\n\n")
    return "\n\n".join(
        f"```python\n{textwrap.dedent(part)}\n```"
        if part.startswith("    ")
        else textwrap.fill(" ".join(part.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
        for part in parts
    )


if __name__ == "__main__":
    print(page(), end="")
