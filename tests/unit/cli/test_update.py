"""tile2cu update: an edit by hand is kept, merged or reported, and never lost."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.test_check import KERNEL, PROJECT, snapshot
from tile2cu.cli import main

TEXT, MINE = "gen/scale.cu", "// tuned by hand on our cards\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    return tmp_path


def edit(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def source(project: Path, factor: str) -> None:
    (project / "scale.py").write_text(KERNEL.replace("2.0", factor), encoding="utf-8")


def side(project: Path) -> Path:
    (found,) = (project / "gen").glob("scale.cu.*.merge")
    return found


def test_without_edits_it_builds(project: Path) -> None:
    source(project, "3.0")
    assert main(["update"]) == 0
    assert "3.0f" in (project / TEXT).read_text(encoding="utf-8")
    assert main(["check"]) == 0


def test_an_edit_is_merged_with_what_is_emitted_now(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(project / TEXT, '#include "scale.h"\n', MINE + '#include "scale.h"\n')
    source(project, "3.0")
    capsys.readouterr()
    assert main(["update"]) == 0
    assert f"merged {project / TEXT}" in capsys.readouterr().out
    text = (project / TEXT).read_text(encoding="utf-8")
    assert MINE in text and "3.0f" in text and "2.0f" not in text
    # It stays an edit, of the text of today: a second update and a build change nothing.
    assert main(["check"]) == 1 and main(["check", "--allow-edited"]) == 0
    for verb in ("update", "build"):
        assert main([verb]) == 0
        assert (project / TEXT).read_text(encoding="utf-8") == text


def test_a_second_merge_starts_from_the_text_of_the_first(project: Path) -> None:
    edit(project / TEXT, '#include "scale.h"\n', MINE + '#include "scale.h"\n')
    for factor in ("3.0", "4.0"):
        source(project, factor)
        assert main(["update"]) == 0
    text = (project / TEXT).read_text(encoding="utf-8")
    assert MINE in text and "4.0f" in text and "3.0f" not in text


def test_a_conflict_leaves_everything_as_it_was(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = edit(project / TEXT, "2.0f", "2.5f")
    source(project, "3.0")
    before = snapshot(project / "gen")
    assert main(["update"]) == 1
    assert "error[T2C-C016]" in capsys.readouterr().err
    marked = side(project).read_text(encoding="utf-8")
    assert all(word in marked for word in ("<<<<<<< edited", "2.5f", "||||||| as it was emitted", "3.0f"))
    after = snapshot(project / "gen")
    del after[str(side(project))]
    assert after == before and (project / TEXT).read_text(encoding="utf-8") == mine
    # Again, with nothing resolved: the same answer, and the marked file is not written anew.
    side(project).write_text(marked + "// half resolved\n", encoding="utf-8")
    assert main(["update"]) == 1
    assert side(project).read_text(encoding="utf-8") == marked + "// half resolved\n"


def test_a_resolved_conflict_is_taken(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = edit(project / TEXT, "2.0f", "2.5f")
    source(project, "3.0")
    main(["update"])
    resolved = mine.replace("2.5f", "3.5f")
    side(project).write_text(resolved, encoding="utf-8")
    capsys.readouterr()
    assert main(["update"]) == 0
    assert f"resolved {project / TEXT}" in capsys.readouterr().out
    assert (project / TEXT).read_text(encoding="utf-8") == resolved
    assert not list((project / "gen").glob("*.merge"))
    assert main(["check", "--allow-edited"]) == 0


@pytest.mark.parametrize("factor", ["2.0", "4.0"])
def test_the_source_went_on_while_a_conflict_was_resolved(project: Path, factor: str) -> None:
    mine = edit(project / TEXT, "2.0f", "2.5f")
    source(project, "3.0")
    main(["update"])
    resolved = mine.replace("2.5f", "3.5f")
    side(project).write_text(resolved, encoding="utf-8")
    source(project, factor)
    assert main(["update"]) == 1, "the resolved line has changed once more"
    marked = side(project).read_text(encoding="utf-8")
    assert "3.5f" in marked and "3.0f" in marked and factor + "f" in marked
    assert (project / TEXT).read_text(encoding="utf-8") == mine


def test_the_base_comes_from_git_where_nothing_is_remembered(project: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "gen"], ["commit", "-qm", "kernels"]):
        subprocess.run([*git, *command], check=True)
    for path in sorted((project / ".tile2cu").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    edit(project / TEXT, '#include "scale.h"\n', MINE + '#include "scale.h"\n')
    source(project, "3.0")
    assert main(["update"]) == 0
    text = (project / TEXT).read_text(encoding="utf-8")
    assert MINE in text and "3.0f" in text and "2.0f" not in text


def test_without_a_base_nothing_is_guessed(project: Path) -> None:
    for path in (project / ".tile2cu/base").iterdir():
        path.unlink()
    mine = edit(project / TEXT, '#include "scale.h"\n', MINE + '#include "scale.h"\n')
    source(project, "3.0")
    assert main(["update"]) == 1
    assert (project / TEXT).read_text(encoding="utf-8") == mine
    assert MINE in side(project).read_text(encoding="utf-8") and "3.0f" in side(project).read_text(encoding="utf-8")


def test_a_file_of_somebody_else_is_not_written_over(project: Path) -> None:
    (project / "gen/scale.json").unlink()
    (project / TEXT).write_text("// ours from before\n", encoding="utf-8")
    assert main(["build"]) == 1 and main(["update"]) == 1
    assert (project / TEXT).read_text(encoding="utf-8") == "// ours from before\n"
