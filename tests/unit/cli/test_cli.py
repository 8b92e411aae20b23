"""The command line: what it writes, what it prints, and that bad input leaves nothing behind."""

import atexit
import gc
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.targets import TARGETS

ROOT = Path(__file__).resolve().parents[3]
GEMM = str(ROOT / "examples" / "gemm_relu.py")
VECTOR_ADD = str(ROOT / "examples" / "vector_add.py")

TWO_KERNELS = """\
import tilelang.language as T


def first(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = 1.0

    return body


def second(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = 2.0

    return body
"""


@pytest.fixture
def two_kernels(tmp_path: Path) -> str:
    path = tmp_path / "two.py"
    path.write_text(TWO_KERNELS, encoding="utf-8")
    return str(path)


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    assert (
        main([GEMM, "--target", "cuda:sm_80", "-D", "M=1024", "-D", "N=1024", "-D", "K=1024", "-o", str(folder)]) == 0
    )
    assert sorted(path.name for path in folder.iterdir()) == ["gemm_relu.cu", "gemm_relu.h", "gemm_relu.json"]
    assert capsys.readouterr().out.split() == [str(folder / f"gemm_relu.{end}") for end in ("cu", "h", "json")]
    manifest = json.loads((folder / "gemm_relu.json").read_text(encoding="utf-8"))
    assert [argument["kind"] for argument in manifest["arguments"]] == ["tensor"] * 3
    assert manifest["bindings"]["M"] == 1024


def test_sizes_that_are_not_given_stay_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([GEMM, "-D", "K=512", "-o", "-"]) == 0
    text = capsys.readouterr().out
    assert "int M, int N, void* /*workspace*/" in text
    assert "K = 512" in text


def test_standard_output_is_the_kernel_text_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([GEMM, "-o", "-"])
    printed = capsys.readouterr().out
    main([GEMM, "-o", str(tmp_path)])
    assert printed == (tmp_path / "gemm_relu.cu").read_text(encoding="utf-8")


def test_a_target_changes_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    main([GEMM, "--target", "cuda:sm_90a", "-o", "-"])
    assert "of 232,448 bytes" in capsys.readouterr().out


def test_a_kernel_is_picked_by_name(two_kernels: str, tmp_path: Path) -> None:
    assert main([two_kernels, "--kernel", "second", "-o", str(tmp_path / "one")]) == 0
    assert sorted(path.stem for path in (tmp_path / "one").glob("*.cu")) == ["second"]
    assert main([two_kernels, "-o", str(tmp_path / "both")]) == 0
    assert sorted(path.stem for path in (tmp_path / "both").glob("*.cu")) == ["first", "second"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("chek", "tile2cu check"), ("kernl.py", "kernel.py"), ("nothing.py", ""), ("circular.py", "circular.py")],
)
def test_what_is_no_file_may_be_meant_for_a_verb_or_another_file(
    name: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").touch()
    (tmp_path / "circular.py").symlink_to("circular.py")
    assert main([name]) == 1
    said = capsys.readouterr().err
    assert "error[T2C-C001]" in said and (f"did you mean `{meant}`?" in said) == (bool(meant) and name != meant)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target", "cuda:sm_81"], "T2C-C003", "source for `cuda:sm_80` can be built for sm_81, too"),
        (["--target", "sm_90"], "T2C-C003", "did you mean `cuda:sm_90a`?"),
        (["--target", "cuda:sm_75"], "T2C-C003", "architectures before sm_80 are not supported"),
        (["--target", "hip:gfx941"], "T2C-C003", "did you mean `hip:gfx9"),
        (["--kernel", "gemm_rel"], "T2C-F", "gemm_relu"),
        (["-D", "M"], "T2C-C002", "NAME=VALUE"),
        (["-D", "config.block=64"], "T2C-C002", "-D 'config=CLASS(block=64, ...)'"),
        (["-D", "block_m=64"], "T2C-F", "block_M"),
        (["-D", "block_M=4096", "-D", "block_N=256"], "T2C-L0", ""),
    ],
)
def test_bad_input_writes_nothing(
    arguments: list[str], code: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([GEMM, *arguments, "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"error[{code}")
    assert words in message
    assert not (tmp_path / "out").exists()


def test_several_kernels_cannot_be_printed_as_one(two_kernels: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([two_kernels, "-o", "-"]) == 1
    assert "first, second" in capsys.readouterr().err


def test_a_missing_file_is_a_diagnostic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere.py"]) == 1
    assert "error[T2C-C001]: cannot read `nowhere.py`" in capsys.readouterr().err


def test_one_bad_kernel_keeps_all_files_unwritten(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(TWO_KERNELS.replace("A[bx * block + i] = 2.0", "A[bx * block + i] = T.sinn(2.0)"), encoding="utf-8")
    assert main([str(path), "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_a_diagnostic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("a file, not a folder", encoding="utf-8")
    assert main([GEMM, "-o", str(tmp_path / "out")]) == 1
    assert "T2C-C005" in capsys.readouterr().err
    assert (tmp_path / "out").read_text(encoding="utf-8") == "a file, not a folder"


def test_includes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--includes"]) == 0
    assert capsys.readouterr().out == f"-I{ROOT / 'headers'}\n"


def test_no_file_and_no_project_is_a_diagnostic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 1
    assert "error[T2C-C010]" in capsys.readouterr().err


def test_a_depfile_names_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("BLOCK = 128\n", encoding="utf-8")
    (tmp_path / "two.py").write_text(
        "from shapes import BLOCK\n" + TWO_KERNELS.replace("block=128", "block=BLOCK"), encoding="utf-8"
    )
    assert main([str(tmp_path / "two.py"), "--kernel", "first", "-o", str(tmp_path / "out"), "-MD"]) == 0
    targets, _, needed = (tmp_path / "out" / "two.d").read_text(encoding="utf-8").partition(": ")
    assert targets.split() == [str(tmp_path / "out" / f"first.{end}") for end in ("cu", "h", "json")]
    assert needed.split() == [str(tmp_path / "two.py"), str(tmp_path / "shapes.py")]


@pytest.mark.parametrize("name", [".", "..", "out"])
def test_a_depfile_cannot_be_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main([GEMM, "-o", "out", "-MF", name]) == 1
    assert "error[T2C-C005]: cannot write to" in capsys.readouterr().err
    assert not [*tmp_path.glob(".*"), *tmp_path.glob("out/*"), *tmp_path.parent.glob(".*.tmp")]


def test_a_faulty_format_is_reported_by_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    style = tmp_path / ".clang-format"
    style.write_text("BasedOnStyle: [", encoding="utf-8")
    assert main([GEMM, "-o", str(tmp_path), "--clang-format", str(style)]) == 1
    assert "error[T2C-E010]: clang-format failed: .clang-format:1:" in capsys.readouterr().err


def test_outputs_are_listed_and_not_written(
    two_kernels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([two_kernels, "-o", str(tmp_path / "out"), "--list-outputs"]) == 0
    names = [str(tmp_path / "out" / f"{name}.{end}") for name in ("first", "second") for end in ("cu", "h", "json")]
    assert capsys.readouterr().out.split() == names
    assert not (tmp_path / "out").exists()


def test_a_format_of_the_users_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    style = tmp_path / ".clang-format"
    style.write_text(
        "---\nBasedOnStyle: LLVM\nIndentWidth: 8\nReflowComments: Always\nSortIncludes:\n  Enabled: true\n",
        encoding="utf-8",
    )
    assert main([GEMM, "-o", str(tmp_path), "--clang-format", str(style)]) == 0
    text = (tmp_path / "gemm_relu.cu").read_text(encoding="utf-8")
    assert "\n        tl::clear(C_local);\n" in text
    assert "//@" not in text
    main([GEMM, "-o", str(tmp_path / "usual")])
    pythons = [
        [line for _, line in json.loads(path.read_text(encoding="utf-8"))["lines"]]
        for path in tmp_path.rglob("gemm_relu.json")
    ]
    assert pythons[0] == pythons[1], "the line map survives the user's format"


def test_the_text_names_the_content_that_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("BLOCK = 128\n", encoding="utf-8")
    (tmp_path / "two.py").write_text(
        "from shapes import BLOCK\n" + TWO_KERNELS.replace("block=128", "block=BLOCK"), encoding="utf-8"
    )
    main([str(tmp_path / "two.py"), "-o", str(tmp_path)])
    manifest = json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))
    wanted = hashlib.sha256(b"BLOCK = 128\n").hexdigest()
    assert manifest["source"]["imports"] == {"shapes.py": wanted}
    assert re.fullmatch("[0-9a-f]{64}", manifest["tool"]["sha256"])
    line = (tmp_path / "first.cu").read_text(encoding="utf-8").splitlines()[1]
    assert line == f"// With shapes.py (sha256 {wanted[:12]}) and tile2cu (sha256 {manifest['tool']['sha256'][:12]})."
    assert str(tmp_path) not in "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("first.*"))


@pytest.mark.parametrize("name", ["../../outside", "a b;c", "printf"])
def test_a_name_that_no_c_function_can_have_writes_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "within" / "it"
    assert main([GEMM, "--name", name, "-o", str(folder)]) == 1
    assert f"no C function can be called `{name}`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


ENCODED = {
    "a byte order mark": b"\xef\xbb\xbf" + TWO_KERNELS.encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\n" + TWO_KERNELS.replace("body", "k\xf6rper").encode("latin-1"),
    "form feeds": TWO_KERNELS.replace("    @T.prim", "\f    @T.prim").replace("\n\n\n", "\n\f\n\n").encode(),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED.keys())
def test_files_are_read_as_python_reads_them(content: bytes, tmp_path: Path) -> None:
    compile(content, "two.py", "exec")
    (tmp_path / "two.py").write_bytes(content)
    arguments = [str(tmp_path / "two.py"), "-o", str(tmp_path)]
    assert main(arguments) == 0
    assert main(["check", *arguments]) == 0


def test_the_lines_of_a_file_with_form_feeds_are_those_of_python(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_bytes(ENCODED["form feeds"])
    main([str(tmp_path / "two.py"), "-o", str(tmp_path), "--kernel", "second", "--line", "python"])
    wanted = TWO_KERNELS.splitlines().index("                A[bx * block + i] = 2.0")
    assert f'#line {wanted + 1} "' in (tmp_path / "second.cu").read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = '\xff'\n", "invalid or missing encoding"),
        (b"# coding: no-such\n", "unknown encoding: no-such"),
        (b"# coding: utf-16\nx = 1\n", "UTF-16"),
    ],
)
def test_what_python_cannot_read_is_an_error(
    content: bytes, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernel.py").write_bytes(content)
    assert main([str(tmp_path / "kernel.py"), "-o", str(tmp_path)]) == 1
    assert reason in capsys.readouterr().err


def test_the_file_is_never_executed(tmp_path: Path) -> None:
    path = tmp_path / "side_effect.py"
    witness = tmp_path / "executed"
    path.write_text(f"open({str(witness)!r}, 'w')\n" + TWO_KERNELS, encoding="utf-8")
    assert main([str(path), "-o", str(tmp_path)]) == 0
    assert not witness.exists()


def test_importing_the_package_is_quick_and_light() -> None:
    heavy = "libcst jinja2 numpy torch cppimport clang_format"
    code = f"import sys, tile2cu; print([m for m in {heavy.split()!r} if m in sys.modules])"
    environment = {"PYTHONPATH": f"{ROOT}/transpile:{ROOT}/runtime"}
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


def test_vendoring_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["vendor"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == "tile2cu vendor: error: the folder is needed: -o DIR"


def test_emission_leaves_no_temporary_files(tmp_path: Path) -> None:
    main([GEMM, "-o", str(tmp_path)])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_lines_are_translated_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([GEMM, "-o", str(tmp_path), "--line", "python"])
    text = (tmp_path / "gemm_relu.cu").read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(text, 1) if "tl::gemm(" in line)
    python = next(
        n for n, line in enumerate(Path(GEMM).read_text(encoding="utf-8").splitlines(), 1) if "T.gemm(" in line
    )
    capsys.readouterr()
    manifest = str(tmp_path / "gemm_relu.json")
    assert main(["map", manifest, str(number)]) == 0
    assert capsys.readouterr().out == f"gemm_relu.py:{python}\n"
    for place in (f"{tmp_path / 'gemm_relu.cu'}:{number}", f"{manifest}:{number}"):
        assert main(["map", place]) == 0
        assert capsys.readouterr().out == f"gemm_relu.py:{python}\n"
    assert main(["map", manifest]) == 1
    assert f"of {manifest} no line is named" in capsys.readouterr().err
    assert main(["map", manifest, f"py:{python}"]) == 0
    (first, last) = re.fullmatch(r"gemm_relu\.cu:(\d+)-(\d+)\n", capsys.readouterr().out).groups()  # type: ignore[union-attr]
    assert int(first) <= number <= int(last)
    assert main(["map", manifest, "1"]) == 1
    assert "no line of gemm_relu.py" in capsys.readouterr().out
    for line, file in (("x", manifest), ("0", manifest), ("1", GEMM)):
        assert main(["map", file, line]) == 1
        assert "error[T2C-C018]" in capsys.readouterr().err


@pytest.mark.parametrize("licence", ["Apache-2.0", "(MIT OR Apache-2.0)", "GPL-2.0-only WITH Classpath-exception-2.0"])
def test_the_licence_of_the_source_goes_along(licence: str, tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(f"# SPDX-License-Identifier: {licence}\n" + TWO_KERNELS, encoding="utf-8")
    main([str(path), "--kernel", "first", "-o", str(tmp_path)])
    for end in ("cu", "h"):
        assert (
            (tmp_path / f"first.{end}")
            .read_text(encoding="utf-8")
            .startswith(f"// SPDX-License-Identifier: {licence}\n// Code gen")
        )
    assert json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))["licences"]["first.cu"] == licence


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """`tile2cu kernel.py -o - | head -1`: no traceback."""
    command = [sys.executable, "-m", "tile2cu", VECTOR_ADD, "-o", "-"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert writer.stdout is not None and writer.stderr is not None
    writer.stdout.close()
    assert b"Traceback" not in writer.stderr.read()
    writer.wait(timeout=60)


def test_the_verb_emit_may_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", GEMM, "-o", "-"]) == 0
    said = capsys.readouterr().out
    assert main([GEMM, "-o", "-"]) == 0
    assert capsys.readouterr().out == said
    assert "gemm_relu" in said


def test_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-targets"]) == 0
    assert capsys.readouterr().out.splitlines() == [target.name for target in TARGETS]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--targt", "cuda:sm_80"], "unrecognized arguments: --targt cuda:sm_80; did you mean `--target`?"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate; `tile2cu --help` lists what there is"),
        (["other.py"], "unrecognized arguments: other.py; one file is taken at a time"),
    ],
)
def test_words_that_are_no_arguments(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([GEMM, *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"tile2cu: error: {said}"


def test_all_errors_of_a_file_are_printed_once_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = tmp_path / "two.py", tmp_path / "out"
    path.write_text(TWO_KERNELS.replace("= 1.0", "= T.coppy(1)").replace("= 2.0", "= T.fil(2)"), encoding="utf-8")
    assert main([str(path), "-o", str(folder)]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert said == ["error[T2C-F010]: T.coppy does not exist", "error[T2C-F010]: T.fil does not exist"]
    assert main([str(path), "-o", str(folder), "--kernel", "second"]) == 1
    assert capsys.readouterr().err.count("error[") == 1
    path.write_text(TWO_KERNELS.replace("= 2.0", "= T.fil(2)").replace("second(N, ", "second("), encoding="utf-8")
    assert main([str(path), "-o", str(folder), "-D", "N=64"]) == 1
    assert capsys.readouterr().err.count("error[") == 1  # and none of -D, which `first` takes
    path.write_text(TWO_KERNELS + "def", encoding="utf-8")
    assert main([str(path), "-o", str(folder)]) == 1
    assert capsys.readouterr().err.count("error[") == 1
    assert not folder.exists()


@pytest.mark.sweep(cases=1)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [["-o", "-"], ["--list-outputs"]], ids=["much", "little"])
def test_an_output_that_cannot_be_written_is_an_error(words: list[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tile2cu", VECTOR_ADD, *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error[T2C-C005]: cannot write to the standard output: No space left on device"]


_WITHOUT = """\
import contextlib, io, json, sys
for name in ("cppimport", "filelock", "ml_dtypes", "numpy", "setuptools"):
    sys.modules[name] = None
from tile2cu.cli import main
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


@pytest.mark.nightly
def test_only_running_needs_the_packages_of_the_runtime(tmp_path: Path) -> None:
    commands = [
        [VECTOR_ADD, "-o", str(tmp_path)],
        ["check", VECTOR_ADD, "-o", str(tmp_path)],
        ["run", VECTOR_ADD, "--size", "N=16"],
        ["review", VECTOR_ADD, "-o", str(tmp_path / "page.html")],
        ["resources", VECTOR_ADD, "--target", "hip:gfx942", "--format", "json"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT], input=json.dumps(commands), capture_output=True, text=True, check=True
    )
    emitted, checked, run, reviewed, resources = map(json.loads, done.stdout.splitlines())
    assert [emitted[0], checked[0], reviewed[0]] == [0, 0, 0]
    assert run[0] == 1 and "Traceback" not in run[2]
    what, help = run[2].splitlines()
    assert what == "error[T2C-R010]: the Python package cppimport is not installed"
    assert help.startswith("  = help: pip install 'tile2cu[run]'")
    (error,) = json.loads(resources[1])["errors"]
    assert (resources[0], error["code"]) == (1, "T2C-C019")


def test_a_process_ends_without_a_last_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    assert main([GEMM, "--list-outputs"]) == 0 and not registered
    monkeypatch.setattr(sys, "argv", ["tile2cu", GEMM, "--list-outputs"])
    assert main() == 0 and registered == [gc.freeze]


def test_the_extra_lists_what_the_command_line_knows() -> None:
    from tile2cu.cli import _OF_THE_RUNTIME

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = text.partition("\nrun = [\n")[2].partition("\n]")[0]
    assert set(re.findall(r'^    "([\w]+)', extra, re.MULTILINE)) == set(_OF_THE_RUNTIME)


_OF_THE_ENVIRONMENT = """\
import os
import tilelang.language as T

WIDE = os.environ.get("WIDE", "no") == "yes"


def scale(N, block=128):
    block = 2 * block if os.getenv("PLATFORM") == "rocm" else block
    block = 4 * block if WIDE else block

    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = 1.0

    return body
"""


def test_variables_of_the_environment_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM", "rocm")  # which no text depends on
    (tmp_path / "scale.py").write_text(_OF_THE_ENVIRONMENT, encoding="utf-8")

    def emitted(*options: str) -> str:
        assert main([str(tmp_path / "scale.py"), "-o", "-", *options]) == 0
        return capsys.readouterr().out

    assert "block = 128;" in emitted()
    assert "block = 256;" in (text := emitted("--env", "PLATFORM=rocm"))
    assert "--kernel scale --env PLATFORM=rocm\n" in text
    assert "block = 1024;" in emitted("--env", "PLATFORM=rocm", "--env", "WIDE=yes")
    (tmp_path / "index.py").write_text(_OF_THE_ENVIRONMENT.replace('.get("WIDE", "no")', '["WIDE"]'), encoding="utf-8")
    assert main([str(tmp_path / "index.py"), "-o", "-", "--env", "WIDE=yes"]) == 0
    assert "block = 512;" in capsys.readouterr().out
    assert main([str(tmp_path / "index.py"), "-o", "-"]) == 1
    assert "= help: set the variable with --env WIDE=VALUE;" in capsys.readouterr().err
    assert main([str(tmp_path / "scale.py"), "--env", "PLATFROM=rocm"]) == 1
    err = capsys.readouterr().err
    assert "error[T2C-F005]: --env PLATFROM: the kernel depends on no variable of this name" in err
    assert "did you mean `PLATFORM`?" in err
    assert main([str(tmp_path / "scale.py"), "--env", "PLATFORM"]) == 1
    assert "`--env PLATFORM` is not of the form NAME=VALUE" in capsys.readouterr().err
    project = '[[tool.tile2cu.kernels]]\nfile = "scale.py"\nenv = {WIDE = "yes"}\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    assert main(["build", "--project", str(tmp_path)]) == 0
    assert "block = 512;" in (tmp_path / "scale.cu").read_text(encoding="utf-8")
