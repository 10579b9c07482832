"""Models by name: those of a TOML file each, and those whose shapes a function works out from the numbers of an architecture."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from sim.base.files import read_toml
from sim.zoo import captioner, residual, transformer

FOLDER = Path(__file__).parent
SIZES = FOLDER / "sizes" / "generated.toml"
MADE: dict[str, Callable[..., dict]] = {
    "bottlenecks": residual.bottlenecks,
    "bert": transformer.bert,
    "gpt2": transformer.gpt2,
    "llama": lambda **config: transformer.llama(config),
    "vit": transformer.vit_16,
}

# What a file would say, by the name of the model; of `MADE` by the numbers in `SIZES`.
GENERATED: dict[str, Callable[[], dict]] = {
    "captioning": lambda: captioner.captioning(table("inception_v3")),
    "resnet18": residual.resnet18,
    "resnet18_cifar": partial(residual.resnet18, small=True),
    "transformer_small": transformer.small,
}
for _kind, _models in read_toml(SIZES, "--workload").items():
    GENERATED |= {name: partial(MADE[_kind], **numbers) for name, numbers in _models.items()}


@cache
def names() -> list[str]:
    """All of them, sorted."""
    return sorted([*GENERATED, *(path.stem for path in FOLDER.glob("*.toml"))])


def table(name: str) -> dict:
    """The table of a model, as its file has it or would have it; KeyError if there is no such model."""
    if name in GENERATED:
        return {"name": name, **GENERATED[name]()}
    if name not in names():
        raise KeyError(name)
    return read_toml(FOLDER / f"{name}.toml", "--workload")
