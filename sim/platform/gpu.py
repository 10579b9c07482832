"""A GPU as its data sheet has it, and what share of its peak rates training reaches."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from sim.base.errors import WrongSetting
from sim.base.models import Checked
from sim.base.ranges import Architecture, Bytes, BytesPerSecond, FlopsPerSecond, LogSpread, Name, Precision, Words

PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")

Reached = Annotated[float, Field(ge=1e-3, le=1, allow_inf_nan=False)]


class Share(Checked):
    """What training reaches of a peak rate.

    Args:
        share: of it, up to 1, in the middle of models: three times the operations of a forward pass, over the time of a step.
        spread: standard deviation of the logarithm of what a model reaches, over the share; that of other GPUs if it is not given.
    """

    share: Reached | None = None
    spread: LogSpread | None = None


class Rate(Share):
    """Arithmetic in one format of numbers, and what models of any class reach of it.

    Args:
        peak: operations a second, without sparsity; tensor cores' where there are any for the format.
        convolution, encoder, decoder: what models of these classes reach; a decoder of at least `LARGE` parameters.
    """

    peak: FlopsPerSecond
    convolution: Share | None = None
    encoder: Share | None = None
    decoder: Share | None = None

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

    def format_of(self, precision: Precision | None, architecture: Architecture | None = None) -> Precision:
        """The default: BF16 of decoders, TF32 of others as in TensorFlow and in PyTorch's convolutions; FP32 where there is none."""
        usual: Precision = "tf32" if self.tf32 else "fp32"
        return precision or ("bf16" if architecture == "decoder" and self.bf16 else usual)

    def reached(self, precision: Precision | None, architecture: Architecture | None = None) -> Rate:
        """The rate of arithmetic in a format, with the share and the spread of a class of models, its own or those of others like it.

        Raises:
            WrongSetting: it does not have this format.
        """
        used = self.format_of(precision, architecture)
        return self._rate(used).model_copy(update=self._law(used, architecture)[0])

    def is_known(self, precision: Precision | None, architecture: Architecture | None = None) -> bool:
        """Whether training of this class at the rate of this format was measured by anybody, of this very GPU."""
        return self._law(self.format_of(precision, architecture), architecture)[1]

    def _law(self, used: Precision, architecture: Architecture | None) -> tuple[dict[str, float], bool]:
        """The share of a format's peak and its spread, and whether the share is its own: of the class, or else of all models."""
        rate = self._rate(used)
        is_plain = used == "fp32" or rate.peak <= self.fp32.peak  # as of GeForce in TF32: tensor cores gain nothing
        of_class = None if is_plain else OTHERS_OF.get((str(architecture), used))
        own = getattr(rate, str(architecture), None) or (Share() if of_class else rate)
        share, spread = of_class or OTHERS["fp32" if is_plain else "tensor"]
        return {"share": own.share or share, "spread": own.spread or spread}, own.share is not None

    def _rate(self, precision: Precision) -> Rate:
        """The catalogue's rate of a format; the same tensor cores compute both formats of 16 bits."""
        rate = getattr(self, precision)
        if rate is None:
            raise WrongSetting("precision", precision, f"{', '.join(self.formats)} on {self.name}")
        if precision == "bf16" and not rate.known and self.fp16 and self.fp16.peak == rate.peak:
            return self.fp16
        return rate


LARGE = 1e9  # parameters of a decoder from which on its share does not grow with them
SLOPE, SLOPE_SPREAD = 0.136, 0.226  # of the logarithm of its share by that of its parameters, below `LARGE`; of codes
# The share, and its spread, where no rate of the GPU was published: of all models, and of classes by experiments/shares.py, but for
# convolutions, measured on too few GPUs. In slow TF32 that of FP32: five models of three sources reach 0.53 on RTX 3090, spread 0.49.
OTHERS = {"fp32": (0.58, 0.61), "tensor": (0.18, 0.67)}
OTHERS_OF = {
    **dict.fromkeys((("encoder", name) for name in ("tf32", "fp16", "bf16")), (0.238, 0.467)),
    **dict.fromkeys((("decoder", name) for name in ("fp16", "bf16")), (0.500, 0.423)),
}
