"""The machine that a driver's questions are answered for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What `torch.cuda.get_device_capability()` and `driver.get_num_sms()` give: the numbers of an A100."""

    capability: tuple[int, int] = (8, 0)
    multiprocessors: int = 108
    warp_size: int = 32

    @property
    def is_amd(self) -> bool:
        """Whether its waves have 64 lanes, as AMD's have."""
        return self.warp_size == 64
