"""What every engine may compute on."""

from __future__ import annotations

from sim.base.errors import WrongSetting

DEVICES = ("cpu", "gpu")


def check(threads: int, device: str) -> None:
    """Refuse what no engine has.

    Raises:
        WrongSetting: fewer threads than one, or an unknown device.
    """
    if threads < 1:
        raise WrongSetting("--threads", threads, "an integer, 1 or more")
    if device not in DEVICES:
        raise WrongSetting("--device", device, ", ".join(DEVICES))
