"""docs/errors.md, written from the table of codes: `python tools/errors_doc.py > docs/errors.md`."""

from __future__ import annotations

import textwrap
from itertools import groupby

from tile2cu.core.codes import CODES

AREAS = {
    "C": "Command line",
    "E": "Emission",
    "F": "Front end",
    "L": "Layout",
    "P": "Pipeline",
    "R": "Runtime",
    "S": "Select",
    "W": "Warnings",
}
HEAD = """\
# Diagnostics

A diagnostic has a code, a place, a message, and where there is one a way out (`help`). Warnings do not prevent that
files are written, except with `-Werror`; `# tile2cu: ignore[W002]` at the end of the line, or alone on the line above,
silences the warnings that it names. This page explains each code. It is written by `tools/errors_doc.py` from
`transpile/tile2cu/core/codes.py`; a test compares.
"""


def page() -> str:
    """The whole page: a section for each letter, an entry for each code, in the codes' order."""
    parts = [HEAD]
    for letter, codes in groupby(sorted(CODES), key=lambda code: code.removeprefix("T2C-")[0]):
        parts.append(f"\n## {AREAS[letter]}\n")
        for code in codes:
            explanation = CODES[code]
            text = textwrap.fill(explanation.text, 120, break_long_words=False, break_on_hyphens=False)
            parts.append(f"\n### {code}: {explanation.title}\n\n{text}\n")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
