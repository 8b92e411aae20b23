"""The machine that a driver's questions are answered for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What `torch.cuda.get_device_capability()` and `driver.get_num_sms()` give: the numbers of an A100."""

    capability: tuple[int, int] = (8, 0)
    multiprocessors: int = 108
    warp_size: int = 32

    @property
    def shared_memory(self) -> int:
        """Bytes of shared memory of a multiprocessor, of which each block of NVIDIA's takes 1024 for itself.

        Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; AMD CDNA ISA, "LDS".
        """
        table = {(9, 5): 160} if self.is_amd else {(8, 0): 164, (8, 7): 164, (8, 6): 100, (8, 9): 100}
        return table.get(self.capability, 64 if self.is_amd else 228) * 1024

    @property
    def is_amd(self) -> bool:
        """Whether its waves have 64 lanes, as AMD's have."""
        return self.warp_size == 64
