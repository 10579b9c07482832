"""The options that sim.run, sim.sweep and real.run share, and the scenario they describe."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.base.errors import Default, WrongSetting
from sim.base.files import check_outputs
from sim.base.ranges import MOST_RANKS, MOST_REPLICATIONS, check_integer
from sim.command import Parser, add_options, number

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster

WORLDS = ("auto", "event", "engine")  # that simulate
DEFAULT_WORKERS = 3
DEFAULT_PROTOCOL = "ddp"
# The usual stragglers, of protocols that are for them.
SLEEPS, SLEPT = "niagara*0.01", ("amb", "fmb", "kbatch-async", "amb-dg")
CHOSEN = ("workers", "batch")  # options whose value is chosen where nobody gives one
DEFAULT_WORKLOAD = "toy_fc"
SEARCH = "search"  # in place of a number of parts
# Endings of the files to write, which sim.recording.traces knows of a trace; `parameters` are of real runs only.
OUTPUTS: dict[str, tuple[str, ...]] = {"trace": (), "report": (".html", ".htm"), "parameters": (".npz",)}


def job_options() -> Parser:
    """A parent parser: what to run."""
    from sim import inline, protocols, zoo
    from sim.job import filling
    from sim.model.variable_placement import STRATEGIES

    parser = Parser(add_help=False)
    table = f"""
        --protocol  NAME  text  {", ".join(protocols.PROTOCOLS)}, or your own as module:Class (default: that of the profile's runs, or
            {DEFAULT_PROTOCOL})
        --workers  N  workers  ranks besides master or servers; all: in every slot of --cluster; 0: one process alone (default: as in the
            profile's runs, all on GPUs, else {DEFAULT_WORKERS})
        --servers  N  int  number of parameter servers of protocols that have them (default: the profile's, or 1)
        --placement  NAME  text=round-robin  how servers share the variables: {" or ".join(STRATEGIES)}
        --variable-partitions  N  parts=1  parts to cut each variable into; search: find the best number, as Parallax does
        --steps  N  int=100  steps to measure
        --warmup  N  int=10  steps before those, which are not measured
        --batch  N  int  samples per worker and step (default: the profile's, or the workload's)
        --stragglers  NAME|LAW|FILE  text  induced sleeps: {", ".join(inline.NAMES)}, one of them times a factor, a law such as
            lognormal(mean=50ms,cv=1.5), module:Class, or a TOML file; a wrong kind lists the laws (default: none; {SLEEPS} with --protocol
            {", ".join(SLEPT)})
        --workload  NAME|FILE  text  {", ".join(zoo.names())}, or a TOML file (default: the model that --cluster was calibrated for, or
            {DEFAULT_WORKLOAD})
        --cluster  KIND*N|FILE  text  hosts as sim.hosts lists them, a cluster or a calibrated profile (default: one rank a host)
        --set  NAME=VALUE  list  a setting of the protocol; a wrong name lists all
        --test-size  N  int=0  samples in each evaluation; 0: no evaluation
        --evaluate-every  N  int=10  steps between two evaluations
        --replications  N  int  runs, each with random numbers of its own (default: real.run 1, sim.run as many as --within allows)
        --seed  N  int=0  random seed: equal seeds, equal sleeps
    """
    read = {"workers": _number_or(filling.ALL, 0), "parts": _number_or(SEARCH, 1)}
    add_options(parser.add_argument_group("the job"), table, **read)
    return parser


def answer_options() -> Parser:
    """A parent parser: where the answer goes."""
    parser = Parser(add_help=False)
    table = """
        --json  -  flag  print one JSON object and nothing else
        --trace  FILE  text  write the activities of the first replication, .parquet or .jsonl
    """
    add_options(parser.add_argument_group("the answer"), table)
    return parser


class Readers:
    """Reads the files and names that options give, each of them once: equal ones are one object."""

    def __init__(self):
        from functools import cache

        from sim import protocols, stragglers
        from sim.model import workload
        from sim.platform import cluster

        self.protocol, self.cluster = cache(protocols.find), cache(cluster.read)
        self.stragglers, self.workload = cache(stragglers.read), cache(workload.read)


def scenario(
    options: argparse.Namespace,
    here: Cluster | None = None,
    read: Readers | None = None,
    reshaped: Callable[[Cluster], Cluster] | None = None,
    **further,
) -> Scenario:
    """The job that the options describe.

    Args:
        here: the cluster if none is given with --cluster; one rank a host if None.
        read: reads files and names.
        reshaped: what is made of the cluster that is given with --cluster.
        further: settings of the scenario that have no option here.

    Raises:
        WrongSetting: naming the option.
    """
    from sim import protocols
    from sim.job import filling
    from sim.job.scenario import LATER, Scenario

    read, stragglers, servers = read or Readers(), sleeps(options), 1 if options.servers is None else options.servers
    check_integer("--servers", servers, 1, MOST_RANKS)  # where there are none, too
    placed = read.cluster(options.cluster) if options.cluster else None
    placed = reshaped(placed) if placed and reshaped else placed
    searches = options.variable_partitions == SEARCH
    protocol, model = protocols.make(options.protocol, options.set), workload_of(options, read)
    workers, beside = options.workers, filling.beside(protocol, model, servers, further.get("servers_on", "own"))
    placed = placed and placed.with_servers(beside)
    if workers == filling.ALL:
        workers = filling.workers(placed, beside, getattr(options, "hosts", None) is not None)
    try:
        described = Scenario(
            protocol=protocol,
            workload=model,
            workers=DEFAULT_WORKERS if workers is None else workers,
            steps=options.steps,
            warmup=options.warmup,
            batch=options.batch,
            cluster=placed or here or LATER,
            stragglers=read.stragglers(stragglers),
            stragglers_name=str(stragglers),
            seed=options.seed,
            test_size=options.test_size,
            evaluate_every=options.evaluate_every,
            servers=servers,
            placement=options.placement,
            variable_partitions=servers if searches else options.variable_partitions,
            **further,
        )
    except WrongSetting as error:
        if (name := error.setting.removeprefix("--")) in CHOSEN and getattr(options, name) is None:
            raise WrongSetting(error.setting, Default(error.given), error.allowed) from error
        raise
    if searches and not described.traffic.sends_rows:
        has = f"with {protocol.name}, {model.name} has no sparse variables on servers"
        raise WrongSetting("--variable-partitions", SEARCH, f"a number: {has}")
    return described


def workload_of(options: argparse.Namespace, read: Readers | None = None) -> Workload:
    """The workload asked for, which may be one by its name that the cluster was calibrated for; or else the first of those.

    Raises:
        WrongSetting: there is none.
    """
    read = read or Readers()
    calibrated = read.cluster(options.cluster).fitted(options.workload) if options.cluster else None
    if not options.workload:
        return calibrated or read.workload(DEFAULT_WORKLOAD)
    try:
        return read.workload(options.workload)
    except WrongSetting:
        if calibrated is None:
            raise
        return calibrated


def sleeps(options: argparse.Namespace) -> str:
    """The stragglers asked for, or the usual ones of the protocols that are compared."""
    compared = getattr(options, "compared", (options.protocol,))
    return options.stragglers or (SLEEPS if {*compared} & {*SLEPT} else "none")


def replications(options: argparse.Namespace, default: int | None) -> int | None:
    """The number of runs; the default, which may be None, if it was not given.

    Raises:
        WrongSetting: the number is below one.
    """
    count = default if options.replications is None else options.replications
    if count is not None:
        check_integer("--replications", count, 1, MOST_REPLICATIONS)
    return count


def check_files(given: argparse.Namespace) -> None:
    """Refuse output files that could not be written, before anything is run.

    Raises:
        WrongSetting: see `outputs`; or an ending that says no format.
        MissingExtra: what writes one of them is not installed.
    """
    check_outputs(outputs(given), inputs(given))
    if given.trace:
        from sim.recording import traces

        traces.check_path(given.trace)


def outputs(given: argparse.Namespace) -> list[tuple]:
    """The options that name files to write, what was given with each, and its endings."""
    return [(f"--{name}", getattr(given, name, None), endings) for name, endings in OUTPUTS.items()]


def inputs(given: argparse.Namespace) -> list[str | None]:
    """Values that may be files to read."""
    return [given.cluster, given.workload, given.stragglers]


def _number_or(word: str, least: int) -> Callable[[str], float | str]:
    """A reader of a number, or of a word in its place."""
    read = number(int, f"an integer from {least}, or {word}")
    return lambda text: text if text == word else read(text)
