"""A GPU as its data sheet has it, and what share of its peak rates training reaches."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from sim.base.errors import WrongSetting
from sim.base.models import Checked
from sim.base.ranges import Bytes, BytesPerSecond, FlopsPerSecond, LogSpread, Name, Precision, Words

PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")

Reached = Annotated[float, Field(ge=1e-3, le=1, allow_inf_nan=False)]


class Rate(Checked):
    """Arithmetic in one format of numbers.

    Args:
        peak: operations a second, without sparsity; tensor cores' where there are any for the format.
        share: of it that training reaches, up to 1, in the middle of models: three times the operations of a forward pass, over the
            time of a step.
        spread: standard deviation of the logarithm of what a model reaches, over the share; that of other GPUs if it is not given.
    """

    peak: FlopsPerSecond
    share: Reached | None = None
    spread: LogSpread | None = None

    @property
    def known(self) -> bool:
        """Whether training at this rate was measured by anybody, so that the share is its own."""
        return self.share is not None


def _rate(given: Any) -> Any:
    """A peak alone is written as a quantity."""
    return given if isinstance(given, dict | Rate) else {"peak": given}


OneRate = Annotated[Rate, BeforeValidator(_rate)]


class Gpu(Checked):
    """One GPU; each rank has one.

    Args:
        fp32, tf32, fp16, bf16: arithmetic in each format that it has.
        memory_bytes: how much it has.
        memory_bytes_per_s: to and from it.
        source: where the numbers come from.
    """

    name: Name
    fp32: OneRate
    tf32: OneRate | None = None
    fp16: OneRate | None = None
    bf16: OneRate | None = None
    memory_bytes: Bytes = 0.0
    memory_bytes_per_s: BytesPerSecond
    source: Words = ""

    @property
    def formats(self) -> list[Precision]:
        """The formats of numbers that it has."""
        return [name for name in PRECISIONS if getattr(self, name)]

    def format_of(self, precision: Precision | None) -> Precision:
        """The default format of arithmetic: TF32 where there is one, as in TensorFlow and in PyTorch's convolutions."""
        return precision or ("tf32" if self.tf32 else "fp32")

    def reached(self, precision: Precision | None) -> Rate:
        """The rate of arithmetic in a format, with a share and a spread, its own or those of others like it.

        Raises:
            WrongSetting: it does not have this format.
        """
        rate = self._rate(self.format_of(precision))
        share, spread = OTHERS["fp32" if self.format_of(precision) == "fp32" else "tensor"]
        own = {name: value for name, value in rate if value is not None}
        return rate.model_copy(update={"share": share, "spread": spread} | own)

    def is_known(self, precision: Precision | None) -> bool:
        """Whether training at the rate of this format was measured by anybody, of this very GPU."""
        return self._rate(self.format_of(precision)).known

    def _rate(self, precision: Precision) -> Rate:
        """The catalogue's rate of a format; the same tensor cores compute both formats of 16 bits."""
        rate = getattr(self, precision)
        if rate is None:
            raise WrongSetting("precision", precision, f"{', '.join(self.formats)} on {self.name}")
        if precision == "bf16" and not rate.known and self.fp16 and self.fp16.peak == rate.peak:
            return self.fp16
        return rate


# The share, and its spread, where no rate of the GPU was published.
OTHERS = {"fp32": (0.58, 0.61), "tensor": (0.18, 0.67)}
