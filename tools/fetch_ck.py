"""Composable Kernel's headers into .ck/include of this checkout, for tests of the style ck.

`python tools/fetch_ck.py` takes them from the source distribution of flash-attn on PyPI, which carries `REVISION`. pip
runs its setup.py, which imports torch, packaging, setuptools and wheel and compiles nothing here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "flash-attn==2.8.3"
REVISION = "e8709c24"  # of Composable Kernel: the submodule of its tag v2.8.3
INSIDE = "csrc/composable_kernel/include/"
TARGET = Path(__file__).resolve().parents[1] / ".ck" / "include"


def main() -> None:
    """Downloads and unpacks the headers; those that are there already are replaced."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--quiet", "--dest", folder)
        environment = os.environ | {"FLASH_ATTENTION_SKIP_CUDA_BUILD": "TRUE"}
        subprocess.run([sys.executable, "-m", "pip", "download", PACKAGE, *options], env=environment, check=True)
        (archive,) = Path(folder).glob("flash_attn-*.tar.gz")
        shutil.rmtree(TARGET, ignore_errors=True)
        with tarfile.open(archive) as source:
            for member in source:
                _, _, path = member.name.partition("/")
                if member.isfile() and path.startswith(INSIDE + "ck_tile/"):
                    file = TARGET / path.removeprefix(INSIDE)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    content = source.extractfile(member)
                    assert content is not None
                    file.write_bytes(content.read())
    print(TARGET)


if __name__ == "__main__":
    main()
