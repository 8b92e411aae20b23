"""A text in a user's style: clang-format has nothing to add, comments fit, and the line map still holds."""

import re
import subprocess
from pathlib import Path

import pytest

from tile2cu.emitter.formatting import clang_format_path
from tile2cu.emitter.restyle import _carried, _fitted, restyled

EMITTED = Path(__file__).parents[3] / "emitted" / "cuda" / "sm_90a"
STYLES = {
    "LLVM": "BasedOnStyle: LLVM",
    "Google": "BasedOnStyle: Google",
    "Mozilla": "BasedOnStyle: Mozilla",
    "WebKit": "BasedOnStyle: WebKit",
    "Microsoft": "BasedOnStyle: Microsoft",
    "GNU": "BasedOnStyle: GNU",
    "braces": "---\nLanguage: Cpp\nBasedOnStyle: LLVM\nInsertBraces: true\nColumnLimit: 100\nIndentWidth: 8\n",
}


def words(text: str) -> list[str]:
    """All letters of a text, but for the sorted order of its includes and clang-format's switches."""
    lines = [line for line in text.splitlines() if "// clang-format o" not in line and not line.startswith("#include")]
    return re.findall(r"\w", " ".join(lines))


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_users_clang_format_has_nothing_to_say(style: str, tmp_path: Path) -> None:
    names = ("attention.cu", "attention.h", "mla_decode.cu")
    rendered = {name: ((EMITTED / name).read_text(encoding="utf-8"), []) for name in names}
    (tmp_path / ".clang-format").write_text(style, encoding="utf-8")
    for name, (text, _) in restyled(rendered, style).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert words(text) == words(rendered[name][0])
        check = [clang_format_path(), "--dry-run", "-Werror", tmp_path / name]
        assert subprocess.run(check, capture_output=True, text=True, check=False).stderr == ""


def test_a_place_is_found_again() -> None:
    """Each line of the old text is a place; what stands there begins with the same letters in the new one."""
    old = (EMITTED / "attention.cu").read_text(encoding="utf-8")
    places = [(number, number) for number, line in enumerate(old.splitlines(), 1) if any(map(str.isalnum, line))]
    [(new, carried)] = restyled({"attention.cu": (old, places)}, STYLES["braces"]).values()
    assert len(new.splitlines()) > len(old.splitlines())
    letters = ["".join(filter(str.isalnum, line)) for line in new.splitlines()]
    for place, number in carried:
        start = "".join(filter(str.isalnum, old.splitlines()[number - 1]))[:3]
        assert start in letters[place - 1] + (letters[place] if place < len(letters) else "")


def test_inserted_braces_move_no_place() -> None:
    assert _carried([(2, 7), (3, 8)], "if (a)\n  b();\nc();\n", "if (a) {\n  b();\n}\nc();\n") == [(2, 7), (4, 8)]


def test_comments_are_filled_to_the_width_and_not_into_one_another() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    long = f"{words} {words[:48]}"  # filled to our own width: the next line goes on
    text = f"  // {long}\n  // goes on here\n  // a remark of its own\n  int i;\n"
    assert _fitted(text, 80).splitlines() == [
        "  // one two three four five six seven eight nine ten eleven twelve one two",
        "  // three four five six seven eight nine ten goes on here",
        "  // a remark of its own",
        "  int i;",
    ]


def test_rulers_end_at_the_width_and_tables_are_left_alone() -> None:
    ruler = "// ---- sizes ".ljust(120, "-")
    assert _fitted(f"{ruler}\n", 60) == "// ---- sizes ".ljust(60, "-") + "\n"
    row = "//   Q   in   float16  (batch, seq_len, heads, dim)          row-major"
    fitted = _fitted(f"{row}\n{row}\n", 60)
    assert fitted == f"// clang-format off\n{row}\n{row}\n// clang-format on\n"


def test_a_command_is_continued_further_in() -> None:
    assert _fitted("//   tile2cu kernel.py --target cuda:sm_80 --kernel gemm\n", 40).splitlines() == [
        "//   tile2cu kernel.py --target",
        "//       cuda:sm_80 --kernel gemm",
    ]
