"""`python -m sim.hosts list` and `show NAME`: the hosts, GPUs and links that clusters may name, see sim.platform.catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sim import command
from sim.base.errors import WrongSetting, nearest
from sim.model.workload_text import counted

if TYPE_CHECKING:
    from sim.platform.catalogue import Kind
    from sim.platform.cluster import Link
    from sim.platform.gpu import Gpu


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="sim.hosts", description="List the hosts, GPUs and links that are known by name, or show one."
    )
    parser.add_argument("what", choices=("list", "show"))
    parser.add_argument("name", nargs="?", metavar="KIND", help="show: a host, a GPU or a link")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    from sim.platform import catalogue

    if (given.name is None) != (given.what == "list"):
        raise WrongSetting(given.what, given.name, "list alone" if given.name else "a KIND, as list names them")
    found = {section: catalogue.all_of(section) for section in catalogue.SECTIONS}
    known = {name: TOLD[section](name, one) for section, all_ in found.items() for name, one in all_.items()}
    if given.name is None:
        print(*map(next, known.values()), sep="\n")
        return 0
    if given.name not in known:
        near = nearest(given.name, known, catalogue.PROPOSED)
        raise WrongSetting("show", given.name, f"a KIND, as list names them{near}")
    print(*known[given.name], sep="\n")
    return 0


def _host(name: str, kind: Kind) -> Iterator[str]:
    gpus = f"{kind.gpus} x {kind.gpu}" if kind.gpus else "no GPU"
    price = f"{kind.price_per_hour:.2f} USD/h" if kind.price_per_hour else ""
    network = f"{kind.network.bandwidth_bytes_per_s * 8 / 1e9:g} Gbit/s" if kind.network else "unknown"
    cores = f"{kind.cores or '?':>4} cores"
    yield f"{name:21} {cores}  {gpus:18}  {kind.local or '':17} {network:>11}  {price}".rstrip()
    for offer, of in kind.offered.items():
        yield f"  {offer}: {of.usd_per_hour:g} USD/h as of {of.as_of}, Linux; {of.source}".rstrip("; ")
    if not kind.offered:
        yield "  no price: none was found, or nobody rents it by the hour"
    if kind.network is None:
        yield "  network: nobody says how fast it is; several of these need one of your own"
    elif kind.network.sustained_bytes_per_s:
        yield f"  in the long run {kind.network.sustained_bytes_per_s * 8 / 1e9:g} Gbit/s"
    if kind.network:
        yield f"  latency {kind.network.latency_s * 1e6:g} us"
    yield f"  {kind.source}"


def _gpu(name: str, gpu: Gpu) -> Iterator[str]:
    memory = f"{counted(gpu.memory_bytes)}B" if gpu.memory_bytes else "memory"
    memory += f" at {counted(gpu.memory_bytes_per_s)}B/s"
    yield f"{name:14} {', '.join(f'{one} {counted(getattr(gpu, one).peak)}flop/s' for one in gpu.formats)}; {memory}"
    for one in gpu.formats:
        rate = gpu.reached(one)
        whose = "" if gpu.is_known(one) else ", of other GPUs: no rate of this one was at hand"
        yield f"  {one}: training reaches {rate.share:.2f} of the peak, spread {rate.spread:.2f}{whose}"
        for kind in ("convolution", "encoder", "decoder"):
            if gpu.is_known(one, kind) and (of := gpu.reached(one, kind)) != rate:
                yield f"    {kind}s {of.share:.2f}, spread {of.spread:.2f}"
    yield f"  {gpu.source}"


def _link(name: str, link: Link) -> Iterator[str]:
    yield f"{name:14} {counted(link.bandwidth_bytes_per_s)}B/s, latency {link.latency_s * 1e6:g} us"


TOLD: dict[str, Callable[[str, Any], Iterator[str]]] = {"hosts": _host, "gpus": _gpu, "links": _link}


if __name__ == "__main__":
    command.run("sim.hosts", main)
