"""The launchers' query of a HIP device, against a runtime that counts the calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).resolve().parents[2] / "headers"

RUNTIME = """
#pragma once
enum hipError_t { hipSuccess = 0, hipErrorInvalidDevice = 101 };
struct hipDeviceProp_t {
  char gcnArchName[256];
};
inline int queries = 0, current = 0;
inline hipError_t hipGetDevice(int* device) { return *device = current, hipSuccess; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  const char* const names[] = {"gfx942:sramecc+:xnack-", "gfx90a", "gfx9-4-generic"};
  ++queries;
  if (device < 0 || device > 2) return hipErrorInvalidDevice;
  __builtin_strcpy(properties->gcnArchName, names[device]);
  return hipSuccess;
}
"""

CALLS = """
#include "tl/hip/device.h"

int main() {
  const auto on = [](const char* arch, int device) {
    bool same = false;
    const hipError_t error = tl::hip::compare_arch(arch, device, same);
    return error != hipSuccess ? static_cast<int>(error) : same ? 1 : 0;
  };
  for (int i = 0; i < 3; ++i) {
    if (on("gfx942", TL_CURRENT_DEVICE) != 1 || on("gfx942", 0) != 1 || on("gfx90a", 0) != 0) return 1;
    if (on("gfx94", 0) != 0 || on("gfx9420", 0) != 0) return 2;
  }
  if (queries != 1) return 3;
  if (on("gfx90a", 1) != 1 || on("gfx942", 1) != 0 || queries != 2) return 4;
  if (on("gfx9-4-generic", 2) != 0 || on("gfx942", 3) != 101 || on("gfx942", 3) != 101) return 5;
  current = 1;
  if (on("gfx90a", TL_CURRENT_DEVICE) != 1 || queries != 5) return 6;
}
"""


@pytest.mark.needs("g++")
def test_properties_are_queried_once_per_device(tmp_path: Path) -> None:
    """A name of more than 8 characters is no target's; an error is not remembered."""
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip" / "hip_runtime.h").write_text(RUNTIME, encoding="ascii")
    source, program = tmp_path / "calls.cpp", tmp_path / "calls"
    source.write_text(CALLS, encoding="ascii")
    include = [f"-I{folder}" for folder in (tmp_path, HEADERS)]
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", *include, source, "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0
