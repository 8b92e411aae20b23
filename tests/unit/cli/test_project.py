"""[tool.tile2cu]: what is built, what is not built again, and what a wrong key says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.emitter.formatting import clang_format_path

ROOT = Path(__file__).resolve().parents[3]

KERNEL = """\
import tilelang.language as T
from shapes import BLOCK


def scale(N, block=BLOCK):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] * 2.0

    return body
"""
PROJECT = """\
[project]
name = "engine"

[tool.tile2cu]
output = "generated"
targets = ["cuda:sm_80", "cuda:sm_89"]

[[tool.tile2cu.kernels]]
file = "scale.py"

[[tool.tile2cu.kernels]]
file = "scale.py"
kernel = "scale"
targets = ["cuda:sm_80"]
output = "fixed"
bindings = { block = 256 }
specialisations = { small = { N = 1024 }, large = { N = 65536 } }
"""
FOLDERS = ("fixed", "fixed/large", "fixed/small")
BY_ARCHITECTURE = ("scale_dispatch.cpp", "scale_dispatch.h", "scale_dispatch.json") + tuple(
    f"scale_{chip}.{end}" for chip in ("sm_80", "sm_89") for end in ("cu", "h", "json")
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "shapes.py").write_text("BLOCK = 128\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The paths that were printed since the last call, as they are below the project."""
    return sorted(str(Path(line).relative_to(Path.cwd())) for line in capsys.readouterr().out.splitlines())


ALL = sorted(
    [
        *(str(Path(f"generated/{folder}/scale.{end}")) for folder in FOLDERS for end in ("cu", "h", "json")),
        *(str(Path("generated") / name) for name in BY_ARCHITECTURE),
    ]
)


def test_specialisations_are_beside_the_kernel_unless_it_is_left_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    assert "generated/fixed/scale.cu" in captured.out
    # Of one function a binary has one, that of the dispatch by architecture included.
    assert "note: generated, generated/fixed, generated/fixed/small, generated/fixed/large define" in captured.err
    assert "define one C function, `scale`" in captured.err
    text = PROJECT.replace("specialisations", "generic = false\nspecialisations")
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    assert main(["build", "--list-outputs"]) == 0
    assert "generated/fixed/scale.cu" not in capsys.readouterr().out


def test_what_is_listed_is_built(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert printed(capsys) == ALL
    small = (project / "generated/fixed/small/scale.cu").read_text(encoding="utf-8")
    assert "N = 1024" in small and "block = 256" in small
    assert "for cuda:sm_89" in (project / "generated/scale_sm_89.cu").read_text(encoding="utf-8")


def test_tests_and_shims_come_along(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        '[tool.tile2cu]\n[[tool.tile2cu.kernels]]\nfile = "scale.py"\nwith-test = true\nshims = ["torch", "dlpack"]\n'
    )
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    assert main([]) == 0
    files = ["scale.cu", "scale.h", "scale.json", "scale_dlpack.cpp", "scale_test.cpp", "scale_torch.cpp"]
    assert printed(capsys) == files
    assert main(["check"]) == 0
    (project / "pyproject.toml").write_text(text.replace('"torch"', '"cupy"'), encoding="utf-8")
    assert main([]) != 0
    assert "there is no shim `cupy`" in capsys.readouterr().err
    (project / "pyproject.toml").write_text(text.replace("true", '"yes"'), encoding="utf-8")
    assert main([]) != 0
    assert "`with-test` is not true or false" in capsys.readouterr().err


def test_only_what_changed_is_built_again(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["build"])
    printed(capsys)
    with monkeypatch.context() as patch:
        patch.setattr("tile2cu.project.job.Job.emit", lambda job: pytest.fail("nothing changed"))
        assert main(["build"]) == 0
    assert printed(capsys) == []
    # An import decides as much as the file; the kernels with a block of their own come out the same.
    (project / "shapes.py").write_text("BLOCK = 512\n", encoding="utf-8")
    assert main(["build"]) == 0
    assert "generated/scale_sm_80.cu" in printed(capsys)
    (project / "generated/scale_sm_89.h").unlink()
    assert main(["build"]) == 0
    assert printed(capsys) == ["generated/scale_sm_89.h"]


def test_outputs_are_listed_before_and_after_they_are_built(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-outputs"]) == 0
    assert printed(capsys) == ALL
    assert not (project / "generated").exists()
    main(["build"])
    printed(capsys)
    assert main(["build", "--list-outputs"]) == 0
    assert printed(capsys) == ALL


def test_an_edited_file_is_not_written_over(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["build"])
    edited = project / "generated/scale_sm_80.cu"
    edited.write_text(edited.read_text(encoding="utf-8") + "// mine\n", encoding="utf-8")
    (project / "shapes.py").write_text("BLOCK = 512\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["build"]) == 1
    said = capsys.readouterr()
    assert (
        "error[T2C-C014]: a file was edited, and its emitted content has changed" in said.err
        and "scale_sm_80.cu" in said.err
    )
    assert edited.read_text(encoding="utf-8").endswith("// mine\n")
    assert "fixed/small/scale.cu" in said.out, "the others are built"
    assert main(["build", "--force"]) == 0
    assert "mine" not in edited.read_text(encoding="utf-8")


def test_one_wrong_kernel_is_said_and_the_others_are_built(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "bad.py").write_text(KERNEL.replace("* 2.0", "* nothing"), encoding="utf-8")
    (project / "pyproject.toml").write_text(
        PROJECT + '[[tool.tile2cu.kernels]]\nfile = "bad.py"\noutput = "bad"\n', encoding="utf-8"
    )
    assert main(["build"]) == 1
    said = capsys.readouterr()
    assert said.err.count("error[T2C-F009]") == 1  # not again for the other target
    assert not (project / "generated/bad").exists()
    assert (project / "generated/scale_sm_80.cu").exists()


def test_git_ignores_what_is_remembered(project: Path) -> None:
    main(["build"])
    assert (project / ".tile2cu/.gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "words"),
    [
        ('output = "generated"', "ouput = 1", "C011", "5:1", "did you mean `output`?"),
        ('output = "fixed"', 'folder = "x"', "C011", "15:1", "unknown key `folder`"),
        ("{ block = 256 }", "7", "C012", "16:1", "`bindings` is not a table"),
        ("small = { N = 1024 }", "small = 3", "C012", "17:21", "`small` is not a table"),
        ('targets = ["cuda:sm_80"]', 'targets = ["cuda:sm_81"]', "C003", "14:1", "unknown target"),
        ("[tool.tile2cu]\n", '[tool.tile2cu]\nline = "on"\n', "C012", "5:1", '"off" or "python"'),
        ("[tool.tile2cu]\n", '[tool.tile2cu]\nstyle = "k&r"\n', "C012", "5:1", "there are tl, cute"),
        ('file = "scale.py"\nkernel', "kernel", "C012", "11:1", "no `file`"),
        ("[project]", "[project", "C012", "", "is not TOML"),
    ],
)
def test_a_wrong_key_is_named_with_its_place(
    project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, code: str, place: str, words: str
) -> None:
    assert PROJECT.count(old) == 1
    (project / "pyproject.toml").write_text(PROJECT.replace(old, new), encoding="utf-8")
    assert main(["build"]) == 1
    said = capsys.readouterr().err
    assert f"error[T2C-{code}]" in said and words in said
    assert f"pyproject.toml:{place}" in said if place else True
    assert not (project / "generated").exists()


def test_two_entries_for_one_file_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = '\n[[tool.tile2cu.kernels]]\nfile = "scale.py"\nkernel = "scale"\n'
    (project / "pyproject.toml").write_text(PROJECT + again, encoding="utf-8")
    assert main(["build"]) == 1
    said = capsys.readouterr().err
    assert "error[T2C-C013]: `scale.py` is emitted twice into `generated`" in said
    assert "pyproject.toml:19:1" in said
    assert not (project / "generated").exists()


DISPATCH = """
[[tool.tile2cu.dispatch]]
name = "twice"
file = "scale.py"
output = "table"
entries = [
  { name = "small", target = "cuda:sm_89", bindings = { block = 256 }, when = "N <= 4096" },
  { name = "any" },
]
"""


@pytest.mark.nightly
def test_a_dispatch_is_built_checked_and_vendored(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(PROJECT + DISPATCH, encoding="utf-8")
    assert main(["build"]) == 0
    table = sorted(path.name for path in (project / "generated/table").iterdir())
    kernels = [f"twice_{name}.{end}" for name in ("any", "small") for end in ("cu", "h", "json")]
    assert table == sorted([*kernels, *(f"twice_dispatch.{end}" for end in ("cpp", "h", "json"))])
    capsys.readouterr()
    assert main(["check"]) == 0
    assert main(["build"]) == 0
    assert capsys.readouterr().out == "", "nothing changed"
    path = project / "generated/table/twice_dispatch.cpp"
    path.write_text(path.read_text(encoding="utf-8").replace("4096", "8192"), encoding="utf-8")
    assert main(["check"]) == 1
    assert "twice_dispatch.cpp: edited" in capsys.readouterr().out
    assert main(["vendor", "-o", "third"]) == 0
    lists = (project / "third/CMakeLists.txt").read_text(encoding="utf-8")
    assert "add_library(tile2cu_twice_dispatch STATIC kernels/table/twice_dispatch.cpp)" in lists
    assert "tile2cu_twice_dispatch PUBLIC tile2cu_kernels_table_sm_80 tile2cu_kernels_table_sm_89" in lists


@pytest.mark.nightly
@pytest.mark.parametrize(("style", "headers"), [("Google", []), ("LLVM", ["--single-header"])])
def test_what_is_vendored_in_a_style_of_ones_own_is_clean_there(project: Path, style: str, headers: list[str]) -> None:
    (project / ".clang-format").write_text(f"BasedOnStyle: {style}\n", encoding="utf-8")
    settings = PROJECT.replace("[tool.tile2cu]\n", '[tool.tile2cu]\nclang-format = ".clang-format"\n')
    (project / "pyproject.toml").write_text(settings + DISPATCH, encoding="utf-8")
    assert main(["vendor", "-o", "third", *headers]) == 0
    files = [path for path in (project / "third").rglob("*") if path.suffix in (".cu", ".h", ".cpp")]
    assert {path.name for path in files} >= {"twice_any.cu", "twice_any.h", "twice_dispatch.cpp", "tl.h"}
    said = subprocess.run([clang_format_path(), "--dry-run", *files], capture_output=True, text=True, check=True).stderr
    assert said == ""


def test_a_wrong_dispatch_is_named_with_its_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(PROJECT + DISPATCH.replace("when", "wenn"), encoding="utf-8")
    assert main(["build"]) == 1
    said = capsys.readouterr().err
    assert "error[T2C-E020]: an entry has no field `wenn`" in said and "pyproject.toml:19:1" in said


def test_two_files_with_kernels_of_one_name_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    again = '\n[[tool.tile2cu.kernels]]\nfile = "other.py"\n'
    (project / "pyproject.toml").write_text(PROJECT + again, encoding="utf-8")
    assert main(["build"]) == 1
    said = capsys.readouterr().err
    assert (
        "error[T2C-C013]: scale.py for cuda:sm_80, cuda:sm_89 and other.py for cuda:sm_80, cuda:sm_89 both write"
        in said
    )
    assert not (project / "generated").exists()
    (project / "pyproject.toml").write_text(PROJECT + again + 'name = "scale_by_3"\n', encoding="utf-8")
    assert main(["build"]) == 0
    assert (project / "generated/scale_by_3_sm_89.cu").exists()


def test_a_build_with_nothing_to_do_brings_no_emitter(project: Path) -> None:
    heavy = ("tile2cu.api", "tile2cu.emitter", "tile2cu_runtime.kernel", "multiprocessing")
    code = f"import sys; from tile2cu.cli import main; main(['build']); print([m for m in {heavy} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}/transpile:{ROOT}/runtime"}
    first, again = (
        subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert "scale.cu" in first and "multiprocessing" in first
    assert again == "[]\n"
