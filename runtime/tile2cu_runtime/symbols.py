"""Names of kernels in compiled code."""

import re


def demangled(symbol: str) -> str:
    """A kernel's demangled name without template arguments: _ZN4gemm6kernelILi1EEEvv is gemm::kernel<>.

    Source: Itanium C++ ABI, "Mangling": names follow their lengths.
    """
    found = re.match(r"_ZN?(?=\d)", symbol)
    names, at = [], found.end() if found else 0
    while found and (length := re.match(r"\d+", symbol[at:])):
        start = at + length.end()
        at = start + int(length[0])
        names.append(symbol[start:at])
    return "::".join(names) + ("<>" if symbol[at : at + 1] == "I" else "") if names else symbol
