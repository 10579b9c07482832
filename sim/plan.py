"""Choose a cluster before paying for it: `python -m sim.plan --workload resnet50 --samples-per-s 10000`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sim import command, report
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs, write_whole
from sim.base.ranges import LONGEST_S
from sim.base.units import assigned, number_or_text, parts
from sim.command import Parser, add_options
from sim.options import OUTPUTS

if TYPE_CHECKING:
    from sim.plans.plan import Plan

WITHIN_S = 60.0
ENDINGS = (".csv", ".parquet")


def plan(job: str | None = None, *, within_s: float = WITHIN_S, processes: int | None = None, **asked: Any) -> Plan:
    """The cheapest configurations that meet a target, as sim.plan prints them.

    A script calls it below `if __name__ == "__main__":`, because the processes that it starts import the script.

    Args:
        job: a TOML file with the names below.
        within_s: seconds after which the plan is made of what is known then.
        processes: their number; one a core if None; 1 is this process alone.
        asked: the names of sim.plan's options with underscores, such as workload="resnet50", samples_per_s=3000, hosts=["p3.2xlarge"],
            counts=[1, 2].

    Raises:
        WrongSetting: an unknown name, a value that it cannot have, no target, or no configuration that can be.
        RunFailed: no configuration could be simulated.
    """
    from sim.plans import plan as plans
    from sim.plans import question
    from sim.sweeps import pools

    if isinstance(within_s, bool) or not isinstance(within_s, (int, float)) or not 0 < within_s <= LONGEST_S:
        raise WrongSetting("within_s", within_s, f"seconds above 0, up to {LONGEST_S:,}")
    return plans.answer(question.read(job, asked), pools.of_size(processes), within_s)


def parser() -> Parser:
    """The command line."""
    parser = Parser(prog="sim.plan", description="Find the cheapest configurations that meet a target.")
    parser.add_argument(
        "JOB", nargs="?", help="a TOML file with the names below, with underscores; options go before it"
    )
    table = """
        --samples-per-s  N  text  least throughput
        --samples  N  text  samples of the whole training, such as "115 M"
        --epochs  N  text  epochs of the whole training, with --samples-per-epoch
        --samples-per-epoch  N  text  samples of one epoch
        --until  N  text  in place of samples, a table of steps to a target by the global batch (columns batch and steps), or accuracy=0.755
            of a model whose published runs reached it
        --deadline  N  text  longest time of the whole training, such as "24 h"
        --budget  N  text  largest cost of the whole training, USD
        --usd-per-hour  N  text  largest price of all hosts together
        --largest-global-batch  N  text  largest number of samples of all workers in a step
        --probability  N  text  probability of meeting the target; default: 0.9
    """
    add_options(parser.add_argument_group("the target"), table)
    table = """
        --protocols  A,B  text  protocols; default: allreduce,ddp,ps-sync
        --hosts  A,B  text  kinds of the catalogue (sim.hosts list), clusters or profiles; KIND*N: N at most; default: all with GPUs and a
            price
        --offers  A,B  text  ways of renting them, on-demand, spot, reserved-1y or reserved-3y; default: on-demand
        --counts  A,B  text  numbers of hosts; default: 1,2,4,8,16,32
        --batches  A,B  text  samples per worker and step; default: the workload's
        --servers  A,B  text  numbers of parameter servers, for protocols that have them; default: 1,2,4
        --servers-on  A,B  text  place of servers, own or workers, as in sim.run; default: workers
        --placements  A,B  text  placements of variables on servers; default: round-robin
        --variable-partitions  A,B  text  parts of each variable; default: 1
        --set  NAME=A,B  list  settings of protocols that have them
    """
    add_options(parser.add_argument_group("choices, separated by commas"), table)
    table = """
        --workload  NAME|FILE  text  the model; default: resnet50
        --stragglers  NAME|LAW|FILE  text  induced sleeps, as in sim.run; default: none
        --failures  '[OFFER:]mtbf=30 d, ...'  list  failures of hosts, as in sim.run: they cost time and money; of all hosts, or of those
            that are rented so
        --price  HOST[:OFFER]=USD  list  price of one host for an hour, on demand or of an offer
        --per-host:gpus_per_host  N  text  workers on each host, on as many of its GPUs; default: all GPUs, or cores, of a host
        --seed  N  text  random seed, the same for all configurations
    """
    add_options(parser.add_argument_group("the job"), table)
    table = f"""
        --keep  N  text  number of configurations to print; default: 10
        --within  SECONDS  float={WITHIN_S}  answer within about this time
        --processes  N  int  number of processes; default: one for each core
        --json  -  flag  print one JSON object and nothing else
    """
    group = parser.add_argument_group("the answer")
    add_options(group, table)
    about = "write every simulated configuration, .csv or .parquet"
    group.add_argument("-o", "--output", metavar="FILE", help=about)
    add_options(group, "--report  FILE  text  write the plan as a page for a browser, .html")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 if no configuration meets the target."""
    given = parser().parse_args(argv)
    outputs = [("--output", given.output, ENDINGS), ("--report", given.report, OUTPUTS["report"])]
    check_outputs(outputs, [given.JOB, given.workload, given.stragglers, given.until])
    if not 0 < given.within <= LONGEST_S:
        raise WrongSetting("--within", given.within, f"seconds above 0, up to {LONGEST_S:,}")
    from sim.plans import plan, question, show
    from sim.sweeps import pools

    found = plan.answer(question.read(given.JOB, asked(given)), pools.of_size(given.processes), given.within)
    with command.printing():
        if given.json:
            print(found.to_json())
        else:
            show.show(found)
    if given.output:  # after the answer, which a full disk must not cost
        write(found, given.output)
    if given.report:
        title = f"Plan: {found.question.workload}, {' and '.join(show.targets(found))}"
        report.write(given.report, title, partial(show.show, found), command.line("sim.plan", argv), found.as_json())
    return 0 if found.met else 1


def asked(given: argparse.Namespace) -> dict[str, Any]:
    """The question in the options."""
    from sim.plans.question import Question

    found: dict[str, Any] = {}
    for name, text in vars(given).items():
        if name in Question.model_fields and isinstance(text, str):
            several = isinstance(Question.model_fields[name].default, tuple)
            found[name] = [number_or_text(one) for one in parts(text)] if several else number_or_text(text)
    settings = {name: list(map(number_or_text, parts(text))) for name, text in assigned("--set", given.set).items()}
    prices = {name: number_or_text(text) for name, text in assigned("--price", given.price).items()}
    failing = assigned("--failures", given.failures, "OFFER:VALUE, or VALUE", ":", of_all=True)
    tables: dict[str, Any] = {"settings": settings, "prices": prices, "failures": failing}
    return found | {name: table for name, table in tables.items() if table}


def write(found: Plan, path: str) -> None:
    """Every simulated configuration; the file's ending says how.

    Raises:
        RunFailed: the system does not take the file.
    """
    rows = found.to_frame()
    write_whole(path, lambda file: (rows.to_csv if path.endswith(".csv") else rows.to_parquet)(file, index=False))


if __name__ == "__main__":
    command.run("sim.plan", main)
