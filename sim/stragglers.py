"""Named laws of induced stragglers, scaled ones (`niagara*0.02`), and a user's own from a file."""

from __future__ import annotations

import os

from pydantic import ValidationError

from sim.arguments import nearest
from sim.errors import WrongSetting, from_validation
from sim.files import read_toml, validated
from sim.laws import Constant, FoldedMixture, Law

LEAST_FACTOR, MOST_FACTOR = 1e-6, 1e4


def _mixture(*rows: tuple[float, float, float]) -> FoldedMixture:
    return FoldedMixture.model_validate({"components": [{"mean_s": m, "std_s": s, "weight": w} for m, s, w in rows]})


# mean, standard deviation, weight: seed 003 (the AMB repository), measured on the clusters of these names.
NAMED: dict[str, Law] = {
    "none": Constant(value=0),
    "niagara": _mixture((0, 0, 0.4), (0, 0.4, 0.3), (2, 0.3, 0.2), (5, 0.3, 0.1)),
    "cedar": _mixture((0, 0, 0.4), (0.05, 0.04, 0.3), (0.15, 0.03, 0.2), (0.25, 0.03, 0.1)),
}


def read(text: str) -> Law:
    """The law called `text`: a name, a name times a factor, or a TOML file with [[components]].

    Raises:
        WrongSetting: neither a name nor a usable file.
    """
    name, times, factor = text.partition("*")
    if name in NAMED:
        return _scaled(NAMED[name], factor, text) if times else NAMED[name]
    path, factor = (text, "") if os.path.exists(text) else (name, factor)
    if not os.path.exists(path):
        allowed = f"{', '.join(NAMED)}, one of them times a factor (niagara*0.02), or a TOML file"
        raise WrongSetting("--stragglers", text, allowed + nearest(name, NAMED))
    law = validated(FoldedMixture, read_toml(path, "--stragglers"), path)
    return law if path == text else _scaled(law, factor, text)


def _scaled(law: Law, factor: str, text: str) -> Law:
    try:
        value = float(factor)
    except ValueError:
        value = 0
    if not isinstance(law, FoldedMixture):
        raise WrongSetting("--stragglers", text, "no factor of a law without sleeps")
    if not LEAST_FACTOR <= value <= MOST_FACTOR:
        raise WrongSetting(
            "--stragglers", text, f"a factor from {LEAST_FACTOR:g} to {MOST_FACTOR:g}, as in niagara*0.02"
        )
    try:
        return law.scaled(value)
    except ValidationError as error:
        raise from_validation(f"--stragglers {text}", error) from error
