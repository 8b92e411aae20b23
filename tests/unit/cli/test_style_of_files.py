"""--style: files, the ABI of the launcher, self-test, shims, #line directives and check are those of the style tl."""

import json
import re
from pathlib import Path

import pytest

from tile2cu.cli import main

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gemm_relu.py"
STYLES = pytest.mark.parametrize(
    ("style", "target"), [("cute", "cuda:sm_80"), ("cute", "cuda:sm_90a"), ("ck", "hip:gfx942")]
)
OTHERS = ("gemm_relu.h", "gemm_relu_test.cpp", "gemm_relu_torch.cpp", "gemm_relu_dlpack.cpp")
SAME = ("entry", "arguments", "bindings", "target", "kernels", "workspace")


def emitted(folder: Path, target: str, *more: str) -> Path:
    files = ["--with-test", "--shim", "torch", "--shim", "dlpack", "--line", "python"]
    assert main([str(EXAMPLE), "--target", target, *files, "-o", str(folder), *more]) == 0
    return folder


@STYLES
def test_files_of_a_style(style: str, target: str, tmp_path: Path) -> None:
    tl, other = emitted(tmp_path / "tl", target), emitted(tmp_path / style, target, "--style", style)
    assert {path.name for path in tl.iterdir()} == {path.name for path in other.iterdir()}
    for name in OTHERS:  # only the command differs
        texts = [(folder / name).read_text(encoding="utf-8") for folder in (tl, other)]
        assert f"--style {style}" in texts[1].replace("\n//", "")
        code = [[line for line in text.splitlines() if not line.startswith("//")] for text in texts]
        assert code[0] == code[1]
    manifests = [json.loads((folder / "gemm_relu.json").read_text(encoding="utf-8")) for folder in (tl, other)]
    assert [each["look"]["style"] for each in manifests] == ["tl", style]
    assert [manifests[0].get(key) for key in SAME] == [manifests[1].get(key) for key in SAME]
    suffix = ".cu" if target.startswith("cuda") else ".hip"
    sources = [(folder / f"gemm_relu{suffix}").read_text(encoding="utf-8") for folder in (tl, other)]
    for pattern in (r'extern "C" [^{]*', r"\bgemm_relu_kernel\("):
        found = [{re.sub(r"\s+", " ", each) for each in re.findall(pattern, source)} for source in sources]
        assert found[0] and found[0] == found[1]
    for pattern in (
        r'(?m)^#line \d+ ".*gemm_relu\.py"',
        r"// gemm_relu\.py:\d+",
        r"// \(T\d+ threads|// ---- registers",
    ):
        assert all(re.search(pattern, source) for source in sources)


@STYLES
def test_a_project_has_a_style(style: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`update` writes it, `check` compares it; another style's files are not up to date."""
    (tmp_path / "gemm_relu.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    project = tmp_path / "pyproject.toml"
    text = f'[tool.tile2cu]\noutput = "out"\nstyle = "{style}"\ntargets = ["{target}"]\n'
    project.write_text(f'{text}[[tool.tile2cu.kernels]]\nfile = "gemm_relu.py"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    assert main(["check"]) == 0
    manifest = json.loads((tmp_path / "out" / "gemm_relu.json").read_text(encoding="utf-8"))
    assert manifest["look"]["style"] == style
    source = next((tmp_path / "out").glob("gemm_relu.[ch][ui]*"))
    source.write_text(source.read_text(encoding="utf-8") + "// changed\n", encoding="utf-8")
    assert main(["check"]) != 0
