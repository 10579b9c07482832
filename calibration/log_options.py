"""The options that say what logs do not, of calibration.fit and calibration.check."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from dataclasses import replace

from calibration.importers import IMPORTERS
from calibration.importers.about import LINK, About
from calibration.sources import KINDS, NCCL, SCALING, STEPS, TIMELINE, TORCH, TRACE, Named
from sim import command
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer

NOTHING = About()
OF_SOURCES = {  # by option, the sources that have a use for it
    "ranks": (TIMELINE, STEPS, NCCL, TORCH),
    "gpus_per_host": (TIMELINE, STEPS, NCCL, TORCH),
    "batch": (TIMELINE, STEPS, TORCH),
    "protocol": (STEPS, TORCH, SCALING),
    "set": (STEPS, TORCH),
    "columns": (STEPS,),
    "unit": (STEPS,),
    "items_per_step": (STEPS,),
    "workload": (*IMPORTERS, TIMELINE, TORCH, SCALING),
    "stragglers": tuple(IMPORTERS),
    "probe": (TRACE, *IMPORTERS),
    "shared_cores": (TRACE, *IMPORTERS),
    "link": (TRACE, *IMPORTERS, TORCH, SCALING),
}


def options() -> command.Parser:
    """A parent parser."""
    parser = command.Parser(add_help=False)
    parser.add_argument(
        "--from",
        dest="source",
        choices=KINDS,
        help="format of TRACE where it does not say SOURCE= (default: by how it begins)",
    )
    imported = parser.add_argument_group("for imported logs, which lack this")
    imported.add_argument("--workload", metavar="NAME", help=f"the trained model (default: {NOTHING.workload})")
    imported.add_argument("--stragglers", default="none", metavar="LAW", help="induced sleeps, such as niagara")
    imported.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="number of ranks of a timeline, a test, a trace or a table of steps (default: those that it names)",
    )
    imported.add_argument(
        "--gpus-per-host",
        type=int,
        metavar="N",
        help="ranks on each host, of a log that does not say them (default: 1)",
    )
    imported.add_argument(
        "--batch", type=int, metavar="N", help="samples per rank and step (default: as logged, or the workload's)"
    )
    imported.add_argument(
        "--columns",
        metavar="OURS=THEIRS,...",
        help="names of a table of steps, such as seconds=train/step_time,step=_step,rank=global_rank; ours are step, rank, seconds, "
        "compute_s, samples and elapsed (seconds since the start, in place of seconds); 'seconds=rank-* time' is a column for each rank",
    )
    imported.add_argument(
        "--items-per-step",
        type=int,
        metavar="N",
        help="samples or tokens that a rate in a log counts in a step, of a rank or of all as the rate (default for samples: by --batch)",
    )
    imported.add_argument("--unit", help="of its times: s, ms, us or ns (default: as the column's name says)")
    imported.add_argument(
        "--protocol",
        metavar="NAME",
        help="protocol of a table of steps: allreduce (the default), fmb, horovod, ...; of scaling: horovod, allreduce, ps-sync, "
        "ps-async, ps-layers",
    )
    imported.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of that protocol")
    return parser


def check(given: Namespace, kinds: Collection[str]) -> None:
    """Refuse options that no source has a use for.

    Raises:
        WrongSetting: naming the option.
    """
    for name, needs in OF_SOURCES.items():
        if (value := getattr(given, name, None)) and value != "none" and not set(kinds) & set(needs):
            raise WrongSetting(f"--{name.replace('_', '-')}", value, f"nothing without --from {' or '.join(needs)}")


def about(given: Namespace, one: Named | None = None) -> About:
    """What the options say of all sources, and one of itself.

    Raises:
        WrongSetting: a link, columns or a unit that cannot be.
    """
    from calibration.importers import table_names
    from sim.platform import other_sizes

    text = getattr(given, "link", None)
    if given.items_per_step is not None:
        check_integer("--items-per-step", given.items_per_step, 1)
    said = About(
        workload=given.workload or NOTHING.workload,
        stragglers=given.stragglers,
        protocol=given.protocol,
        settings=tuple(given.set),
        batch=given.batch,
        link=other_sizes.link(text, LINK) if text else None,
        ranks=given.ranks,
        items=given.items_per_step,
        names=table_names.names_of(given.columns, given.unit),
    )
    return replace(said, batch=one.batch or said.batch, ranks=one.ranks or said.ranks) if one else said
