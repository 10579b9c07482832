"""Hosts, the links between them, and where the ranks sit; a profile is a cluster that calibration wrote."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice, repeat
from math import exp, inf, log, log2
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from sim.base.errors import WrongSetting
from sim.base.files import names_a_file, read_toml, text_of, validated
from sim.base.models import Checked
from sim.base.ranges import (
    MOST_RANKS,
    BothWays,
    Bytes,
    BytesPerSecond,
    Cores,
    Count,
    CountIfAny,
    Flag,
    HostName,
    Hosts,
    LogSpread,
    Name,
    Parameters,
    Price,
    Probability,
    Ranks,
    RanksIfAny,
    Seconds,
    Slowdown,
    Speed,
    Spread,
    Switching,
    Window,
    Words,
    check_integer,
)
from sim.model.costs import Costs
from sim.platform.gpu import Gpu

if TYPE_CHECKING:
    from sim.model.workload import Workload

SCHEMA = "cluster/1"
SERVER = "server"  # the name of a fitted profile's hosts that have parameter servers alone
UNCOUNTED = 1024  # hosts of a profile, or ranks of its host, whose source did not say how many there were: more than it has cores


def _by_name(section: str) -> BeforeValidator:
    """Reads an entry of a section of the catalogue where a file gives its name."""

    def found(given: Any) -> Any:
        from sim.platform import catalogue

        return catalogue.find(section, given) if isinstance(given, str) else given

    return BeforeValidator(found)


class Host(Checked):
    """`count` equal machines; `type` is the name of one in sim.platform.catalogue, which has the values that are not given.

    Args:
        name: its name for mpirun; numbered when count > 1.
        cores: ranks beyond this number share them; one for each GPU if only that is known by name.
        gpus: number of GPUs of each, which ranks take in turn. Ranks then share only the cores and the port, unless there are more
            slots than GPUs: ranks that compute on one GPU at once share its pace.
        gpu: each of them, by its name in sim.platform.catalogue or with its rates: see sim.platform.gpu.
        slots: ranks that may be placed on it; by default as many as GPUs, or else as cores.
        speed: relative to the core that the costs were measured on; of a GPU that is known by name, to others of that name.
        contention: share by which work is longer for each other busy core of the host: caches, memory, hyperthreads.
        contention_error: calibration's uncertainty: standard deviation of the logarithm of 1 + contention. Every simulated run has
            `contention` as it is; intervals have the rest (sim.answers.quantities).
        switching: share by which work on a GPU is longer while several ranks compute on it, beside their shares of it: the GPU
            changes from process to process. Below 0 where one rank alone leaves the GPU idle between its kernels.
        price_per_hour: USD for one of these; that of its type if not given.
    """

    name: HostName = "host"
    count: Hosts = 1
    cores: Cores = 1
    gpus: Cores | None = None
    gpu: Annotated[Gpu, _by_name("gpus")] | None = None
    slots: Ranks | None = None
    speed: Speed = 1.0
    contention: Slowdown = 0.0
    contention_error: LogSpread = 0.0
    switching: Switching = 0.0
    price_per_hour: Price | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_its_type(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        from sim.platform import catalogue

        table = catalogue.of_type(given)
        if table.get("gpu") is None:
            return table
        several = table.get("gpus") or 1
        return {"gpus": several, "cores": several} | table

    @property
    def ranks(self) -> int:
        """The number of ranks that one of these takes."""
        return self.slots or self.gpus or self.cores


class Tcp(Checked):
    """Windows: bytes that a sender may have in flight before they are acknowledged.

    Args:
        initial_window_bytes: ten segments of an Ethernet (RFC 6928).
        window_bytes: the most: half of the receive buffer's limit (Linux: tcp_rmem to 6 MiB, tcp_adv_win_scale 1).
        connections: over which a message is spread evenly; each has such windows.
    """

    initial_window_bytes: Window = 10 * 1460
    window_bytes: Window = 3 * 2**20
    connections: Ranks = 1

    @model_validator(mode="after")
    def _grows(self):
        if self.initial_window_bytes > self.window_bytes:
            raise ValueError("initial_window_bytes up to window_bytes")
        return self


# NCCL reckons with 50 us for a round of a tree between hosts; within a host a round costs 6.5 us by NVLink and 11 us by PCIe (its
# src/graph/tuning.cc).
TREE_S, INNER_S = 50e-6, 8e-6


def trees_s(levels: Any, each: Any, between_s: float, within_s: float) -> Any:
    """Seconds of the rounds of an allreduce by double binary trees over hosts, each a chain of ranks, in pieces that follow one another.

    NCCL, src/graph/tuning.cc (2.5 to 2.20): 2 log2(hosts) rounds between hosts, and 2 (ranks of a host - 1) within one.

    Args:
        levels: log2(hosts); a number or an array, as `each` is.
    """
    return 2 * (levels * between_s + (each - 1) * within_s)


class Link(Checked):
    """LogGP (Alexandrov et al., 1995): L, o, g and 1/G. Between hosts a port carries the bytes; within a host, the receiver's core.

    Args:
        latency_s: L, from the sender's port to the receiver's.
        overhead_s: o, seconds of a core at each end of a message.
        gap_s: g, seconds a port is taken by any message besides its bytes.
        bandwidth_bytes_per_s: 1/G.
        sustained_bytes_per_s: the rate of a port in the long run, if less than that: it earns credit for so many bytes a second, has
            none at the start, and sends no byte without credit (the network I/O credits of smaller EC2 instances).
        background_s: seconds of a core that a message takes at each end while nobody waits for them: the transport's threads
            (gRPC's, in TensorFlow's servers). They slow ranks that need the cores.
        wakes: within a host, the latency is the time to wake an idle core: there is none while all its cores are busy.
        by_port: within a host, a port of the sender carries the bytes, and no core: of a link on which sums were timed as a whole, with
            the waits of the threads that copy.
        fair: messages that pass a port at once share it, as TCP's flows do; otherwise it serves one after another.
        unfairness: coefficient of variation of the weights by which they share it, drawn for each message: TCP's shares are unequal.
        ramp_bytes: of a fair link: a message that starts while another one leaves the same port has a sixteenth of its share at
            first, because the other's window has grown. The share doubles whenever the port could have passed so many bytes.
        burst_bytes: bytes that an idle port passes at once, if it is fair: it is a token bucket, as shapers are (tc tbf).
        eager_bytes: of a fair link, the longest message that leaves without a request; a longer one leaves when its receiver has
            requested it (MPI's rendezvous). Over TCP that request queues after the bytes that the receiver is sending to the sender.
            Two ranks that exchange messages therefore send them one after the other, unless they begin within the request's travel.
            None without requests.
        queue_bytes: of a fair link, the queue before a busy port. A message that is no longer than the queue waits for it (MPI's
            control messages, requests): latency under load.
        buffer_bytes: of a fair link, bytes that a sender's system buffers: a send ends when no more than these remain.
        tree_s, tree_inner_s: seconds of a round of a tree between hosts, and within one, of a library that takes trees in place of a ring
            whose rounds take longer than theirs (NCCL). Bytes take as long as on the ring. None: it has rings alone.
        named: whether its bandwidth is what it is called by ("25 Gbit/s"), and neither measured nor known by its user to be reached.
            A byte then takes as long as the median of what published runs reached (sim.platform.named_links).
        both_ways: factor on the time of a byte where two hosts alone sum without servers. A ring over two hosts has both of its
            directions between one pair of hosts, whose flow may be limited (on EC2); a ring over three or more has one.
        contention: share by which a byte takes longer for each further rank of a host, where ranks sum without servers: GPUs share the
            host's memory and PCIe lanes with its port.
        uneven: standard deviation of the logarithm by which the links of hosts differ. Three hosts or more that sum without servers wait
            for the slowest of as many links; `bandwidth_bytes_per_s` is the median link's.
        store_and_forward: a message begins to pass the receiver's port when all of it has left the sender's, as with transports that
            hand over whole messages (gRPC, a tensor each); otherwise as it leaves (cut-through).
        tcp: windows, which delay messages where latency is long; None for no windows.
        latency_spread, bandwidth_spread: standard deviation of the logarithm, from one measurement of the link to another; None if
            that was not measured. Simulated links do not vary; intervals contain the spread (sim.answers.extrapolation).
        spread_by_hosts: numbers of hosts in order, and for each the standard deviation of the logarithm of all messages' seconds, as far
            as a fit of steps leaves the link unknown; empty if it was not fitted to steps.
    """

    latency_s: Seconds = 20e-6
    overhead_s: Seconds = 5e-6
    gap_s: Seconds = 0.0
    bandwidth_bytes_per_s: BytesPerSecond = 1.25e9
    sustained_bytes_per_s: BytesPerSecond | None = None
    background_s: Seconds = 0.0
    wakes: Flag = False
    by_port: Flag = False
    fair: Flag = False
    unfairness: Spread = 0.0
    ramp_bytes: Bytes = 0.0
    burst_bytes: Bytes = 0.0
    eager_bytes: Bytes | None = None
    queue_bytes: Bytes = 0.0
    buffer_bytes: Bytes = 0.0
    tree_s: Seconds | None = None
    tree_inner_s: Seconds = 0.0
    named: Flag = False
    both_ways: BothWays = 1.0
    contention: Slowdown = 0.0
    uneven: LogSpread = 0.0
    store_and_forward: Flag = False
    tcp: Tcp | None = None
    latency_spread: LogSpread | None = None
    bandwidth_spread: LogSpread | None = None
    spread_by_hosts: tuple[tuple[Ranks, LogSpread], ...] = ()

    @model_validator(mode="after")
    def _shapes_alike(self):
        if self.fair and self.sustained_bytes_per_s:
            raise ValueError("sustained_bytes_per_s without fair")
        shared = ("unfairness", "ramp_bytes", "burst_bytes", "queue_bytes", "buffer_bytes")
        if not self.fair and (self.eager_bytes is not None or any(getattr(self, name) for name in shared)):
            raise ValueError(f"eager_bytes, {', '.join(shared)} with fair = true")
        if self.fair and self.bandwidth_bytes_per_s == inf:
            raise ValueError("bandwidth_bytes_per_s: a finite one with fair, whose messages share it")
        if self.fair and self.tcp:
            raise ValueError("tcp without fair")
        if self.store_and_forward and (self.fair or self.tcp):
            raise ValueError("store_and_forward without fair and tcp")
        return self

    def slower(self, hosts: int, each: float = 1.0) -> float:
        """Times as long as a byte takes where so many hosts, of `each` ranks in the mean, sum without servers."""
        if hosts < 2:
            return 1.0
        shared = 1 + self.contention * (each - 1)
        if hosts == 2:
            return shared * self.both_ways
        return shared * (exp(self.uneven * slowest(hosts)[0]) if self.uneven else 1.0)

    def among(self, hosts: int, each: float, ring: bool) -> Link:
        """The link as messages find it where so many hosts, of `each` ranks in the mean, sum without servers.

        Args:
            ring: whether they sum by a ring, in whose place the library may take trees.
        """
        slower, update = self.slower(hosts, each), {}
        if slower != 1:
            update["bandwidth_bytes_per_s"] = self.bandwidth_bytes_per_s / slower
        if ring and self.tree_s is not None and hosts > 1:
            rounds = 2 * (hosts * each - 1)
            update["gap_s"] = min(self.gap_s, trees_s(log2(hosts), each, self.tree_s, self.tree_inner_s) / rounds)
        return self.model_copy(update=update) if update else self

    def with_trees(self, hosts: int, each: float, inner_s: float) -> Link:
        """The link of a ring in whose place NCCL takes trees, where their rounds take less time; the same link where they do not.

        Bytes take as long as on the ring. Of a link without `tree_s` the trees' rounds are those that NCCL reckons with.

        Args:
            hosts, each: that sum, and the ranks of each in the mean.
            inner_s: seconds of a message within a host, besides its bytes.
        """
        if hosts < 2:
            return self
        rounds, message_s = 2 * (hosts * each - 1), self.latency_s + 2 * self.overhead_s
        if self.tree_s is None:
            taken_s = trees_s(log2(hosts), each, max(TREE_S, message_s + self.gap_s), INNER_S)
        else:
            taken_s = trees_s(log2(hosts), each, max(self.tree_s, message_s), self.tree_inner_s)
        ring_s = 2 * (hosts - 1) * (message_s + self.gap_s) + 2 * hosts * (each - 1) * inner_s
        if taken_s >= max(ring_s, rounds * self.gap_s):
            return self
        update = {"latency_s": 0.0, "overhead_s": 0.0, "gap_s": taken_s / rounds, "tree_s": self.tree_s or TREE_S}
        return self.model_copy(update=update)

    def spread_at(self, hosts: int) -> float:
        """`spread_by_hosts` at any number of hosts, in proportion to its logarithm between two numbers; 0 if there is none."""
        import numpy as np

        if not self.spread_by_hosts:
            return 0.0
        numbers, spreads = zip(*self.spread_by_hosts, strict=True)
        return float(np.interp(log(hosts), np.log(numbers), spreads))

    def for_items(self, times: float) -> Link:
        """The link on which a byte takes so many times as long."""
        rates = {name: getattr(self, name) for name in ("bandwidth_bytes_per_s", "sustained_bytes_per_s")}
        return self.model_copy(update={name: rate / times for name, rate in rates.items() if rate})

    def occupancy_s(self, size_bytes: Any) -> Any:
        """Seconds that one message takes a port; of an array of sizes those of each."""
        return self.gap_s + size_bytes / self.bandwidth_bytes_per_s


FREE = Link(latency_s=0.0, overhead_s=0.0, bandwidth_bytes_per_s=inf)
LOCAL = Link(latency_s=0.0, overhead_s=100e-6, bandwidth_bytes_per_s=5e9)
BUCKET = "bucket_"  # a variable of a recorded model (trainsim.recording.pytorch), by the beginning of its name
ASSUMED = Link(named=True)  # between hosts, where nothing tells


class Model(Checked):
    """The model that a profile's costs belong to, whatever its name: its parameters, and a digest of its operations.

    Args:
        buckets: whether its variables are the buckets in which gradients are summed, which the same model may have others of.
        batch: samples of a worker and step of the largest run that was fitted.
        described: the whole model, as in its file; None of one that comes with the simulator.
    """

    parameters: Parameters
    digest: Words
    buckets: bool = False
    batch: Count | None = None
    described: dict[str, Any] | None = None

    @classmethod
    def of(cls, workload: Workload) -> Model:
        """The identity of a workload; names of variables, and costs in its file, change nothing."""
        variables = [variable.model_dump(mode="json", exclude={"name"}) for variable in workload.variables]
        said = json.dumps([variables, workload.sample_shape, workload.inputs, workload.classes])
        said += (workload.precision or "") + (f", gradients {workload.gradients}" if workload.gradients else "")
        buckets = bool(variables) and all(variable.name.startswith(BUCKET) for variable in workload.variables)
        digest = hashlib.sha256(said.encode()).hexdigest()[:16]
        return cls(parameters=workload.parameters, digest=digest, buckets=buckets)

    @classmethod
    def fitted(cls, workload: Workload, batch: int) -> Model:
        """The identity of a workload that runs of this batch trained, with all that a prediction needs to know of it."""
        from sim.model.workload import NAMED

        update: dict[str, Any] = {"batch": batch}
        if NAMED.get(workload.name) != workload:
            update["described"] = workload.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return cls.of(workload).model_copy(update=update)

    def same(self, other: Model) -> bool:
        """Whether costs of one hold for the other, which has its name."""
        return self.parameters == other.parameters and (self.digest == other.digest or self.buckets or other.buckets)


class Growth(Checked):
    """How the steps of a table grew with its sizes, and what that leaves open of larger ones (sim.answers.growth); logarithms.

    Args:
        per_doubling: root mean square of the growth of a step with a doubling of hosts, or of GPUs of one host; the first
            counts less, and none more than sim.answers.growth.MOST.
        offs: of the largest size, GPUs of a host, samples of a GPU and step, and measured over simulated steps.
        fewest: such samples at the largest size, if all smaller sizes have more (strong scaling); 0 of other tables.
        power: of samples, by which steps took less there than at the next smaller size.
        simulated, unchanged: scales of the slow side for a doubling, of the simulated step, and of a step that is as long as at the
            largest size.
        simulated_weight: how likely the first of these two is the right one, by how well each told sizes from smaller ones.
        drifts: whether a step is expected to be longer than both say. After two numbers of hosts it is not: what begins with a second host
            ends there, and two hosts have one link.
    """

    per_doubling: LogSpread
    offs: tuple[tuple[Count, Count, Annotated[float, Field(ge=-3, le=3, allow_inf_nan=False)]], ...] = ()
    fewest: CountIfAny = 0
    power: Probability = 1.0
    simulated: LogSpread
    unchanged: LogSpread
    simulated_weight: Probability
    drifts: bool = True

    def off(self, each: int, batch: int) -> float:
        """Of `offs`, that with so many GPUs a host, or nearly, and samples; their mean where that batch was not measured."""
        rows = [one for one in self.offs if one[1] == batch] or self.offs
        distances = [abs(gpus - each) for gpus, *_ in rows]
        near = [off for (*_, off), distance in zip(rows, distances, strict=True) if distance == min(distances)]
        return sum(near) / max(1, len(near))


class Provenance(Checked):
    """The origin of a profile's numbers.

    Args:
        models: of the workloads that were fitted, by name.
        workers, hosts: the largest numbers of any fitted run; None in profiles of an older version.
        servers: parameter servers of the largest one; None without.
        servers_on: their place, see sim.job.scenario.Scenario.
        cores: of the one machine that runs were recorded on (trainsim.Recorder), which more ranks would share; None of others.
        batches: the least and the most samples of a worker and step that were fitted, by workload.
        repeated: workloads with repeated runs, which show the variation between runs.
        paired: those of them that have one pair of repeats, whose difference says little of others (Student's t).
        slept, crowded: whether any fitted run had induced sleeps, or more workers on a host than cores; if not, predictions of such
            runs rest on the model alone.
        laws: of those sleeps, by name, without a factor.
        stragglers: the law of sleeps that all fitted runs had, as `--stragglers` takes it; none if they differ.
        links_measured: whether the links between hosts were probed or fitted; if not, they are known by name alone.
        local_measured: whether the link between GPUs of a host was; if not, it is known by name alone, or free.
        sums_in_links: whether the links' seconds contain the sums of allreduces, as tests of a library on GPUs without a name have them.
        engines: libraries that computed in the fitted runs (tensorflow, numpy), as far as known.
        protocol, settings: of the largest fitted run; of a log that does not say them, those given, or those that explain it best.
        growth: of the table of sizes that was fitted; None if none was, or one of a single size.
    """

    traces: tuple[Words, ...] = ()
    made: Words = ""
    notes: tuple[Words, ...] = ()
    models: dict[Words, Model] = Field(default={})
    workers: RanksIfAny | None = None
    hosts: Ranks | None = None
    servers: Ranks | None = None
    servers_on: Literal["own", "workers"] = "own"
    cores: Cores | None = None
    batches: dict[str, tuple[Count, Count]] = Field(default={})
    repeated: tuple[Words, ...] = ()
    paired: tuple[Words, ...] = ()
    slept: Flag = False
    crowded: Flag = False
    laws: tuple[Words, ...] = ()
    stragglers: Words = "none"
    links_measured: Flag = True
    local_measured: Flag = False
    sums_in_links: Flag = False
    engines: tuple[Words, ...] = ()
    protocol: Words = ""
    settings: tuple[Words, ...] = ()
    growth: Growth | None = None


class Cluster(Checked):
    """Hosts, the links between them, and costs on them.

    Args:
        hosts: filled with ranks in order, as mpirun fills slots.
        network: the link between hosts.
        library: `network` within a library's collective, whose ranks poll without sleeping; the same if None.
        local: the link between ranks of one host; of GPUs by its name in sim.platform.catalogue. Those of hosts' types unless given.
        shared_cores: if the hosts are containers or namespaces of one machine, its number of cores for all of them.
        oversleep_s: seconds by which a sleep lasts too long.
        oversleep_spread: standard deviation of its logarithm, as of a link's latency; None if that was not measured.
        poll_s: seconds of a core for one poll of a waiting rank. It sleeps in between (sim.platform.polling) and sees a message at its next
            poll; ranks that share cores take these seconds from one another. 0 for runtimes that are woken.
        costs: by workload name, measured on this cluster's cores; a workload's own nominal costs otherwise.
        provenance: set by calibration.
    """

    schema_: Literal["cluster/1"] = Field(default="cluster/1", alias="schema")
    name: Name = "cluster"
    hosts: tuple[Host, ...] = Field(min_length=1, max_length=MOST_RANKS)
    network: Link = Link()
    library: Link | None = None
    local: Annotated[Link, _by_name("links")] = LOCAL
    shared_cores: Cores | None = None
    oversleep_s: Seconds = 0.0
    oversleep_spread: LogSpread | None = None
    poll_s: Seconds = 0.0
    costs: dict[Words, Costs] = Field(default={})
    provenance: Provenance | None = None

    @model_validator(mode="before")
    @classmethod
    def _links_of_types(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("hosts"), list | tuple):
            return given
        from sim.platform import catalogue

        return catalogue.links_of(given["hosts"], "network" in given) | given

    def costs_of(self, workload: Workload) -> Costs | None:
        """The costs of a workload here; None if they were not measured, or only for another model of the same name."""
        known = self.provenance.models.get(workload.name) if self.provenance else None
        return None if known and not known.same(Model.of(workload)) else self.costs.get(workload.name)

    def known(self, *notes: str, **facts: Any) -> Cluster:
        """The profile with further notes on its origin, and other facts (fields of Provenance)."""
        origin = self.provenance or Provenance()
        facts = {"notes": (*origin.notes, *notes)} | facts
        return self.model_copy(update={"provenance": origin.model_copy(update=facts)})

    def fitted(self, name: str | None = None) -> Workload | None:
        """The model of that name, or the first, that a profile was fitted for; None if there is none that it or the simulator describes."""
        from sim.model.workload import NAMED, Workload

        known = self.provenance.models if self.provenance else {}
        for one in self.costs if name is None else [name]:
            if one in known and (table := known[one].described) is not None:
                return validated(Workload, table, f"{self.name}: models: {one}")
            if one in NAMED and one in self.costs:
                return NAMED[one]
        return None

    @property
    def slots(self) -> int:
        """Ranks that may be placed on all hosts."""
        return sum(host.count * host.ranks for host in self.hosts)

    @property
    def usd_per_hour(self) -> float | None:
        """USD an hour of all hosts; None if one of them has no price."""
        prices = [host.price_per_hour and host.count * host.price_per_hour for host in self.hosts]
        return None if None in prices else sum(price or 0.0 for price in prices)

    def machines(self) -> Iterator[Host]:
        """Every host singly, in order."""
        for h in self.hosts:
            for i in range(h.count):
                yield h.model_copy(update={"name": f"{h.name}{i}" if h.count > 1 else h.name, "count": 1})

    def placement(self, ranks: int, servers: int = 1) -> list[int]:
        """The index in `machines()` of each rank's host; `servers` of the ranks are no workers.

        Raises:
            WrongSetting: more ranks than slots.
        """
        slots = self.slots
        if ranks > slots:
            others = {0: "", 1: ", one for the master"}.get(servers, f", {servers} for servers")
            fewer = f"at most {slots - servers} workers" if slots > servers else "a cluster with more slots"
            allowed = f"{fewer}: the cluster {self.name!r} has {slots} slot{'s' * (slots != 1)}{others}"
            raise WrongSetting("--workers", ranks - servers, allowed)
        room = chain.from_iterable(repeat(host.ranks, host.count) for host in self.hosts)
        return list(islice((index for index, several in enumerate(room) for _ in range(several)), ranks))

    @property
    def serving(self) -> tuple[Host, ...]:
        """The hosts of a fitted profile that have its parameter servers alone."""
        known = self.provenance
        apart = known and known.servers and known.servers_on == "own"
        return tuple(host for host in self.hosts if apart and host.name == SERVER)

    def with_servers(self, count: int) -> Cluster:
        """The cluster with so many hosts for servers alone, if it is a profile that has such hosts."""
        if not (beside := self.serving):
            return self
        workers = tuple(host for host in self.hosts if host not in beside)
        servers = (beside[0].model_copy(update={"count": count}),) if count else ()
        return self.model_copy(update={"hosts": (*servers, *workers)})

    def with_each(self, ranks: int | None) -> Cluster:
        """The cluster with so many ranks placed on each host, of as many GPUs, or else cores, as it has; the same cluster if None.

        Hosts that were fitted to a table of sizes have no number of GPUs of their own: they may have more than the table says.
        On a machine whose runs were recorded, ranks beyond its cores share them.

        Raises:
            WrongSetting: a host takes fewer.
        """
        if ranks is None:
            return self
        known = self.provenance or Provenance()
        beside = self.serving
        most = min(host.gpus or max(host.cores, host.slots or 1) for host in self.hosts if host not in beside)
        check_integer("--per-host", ranks, 1, MOST_RANKS if known.growth is not None or known.cores else most)
        more = {"slots": ranks} | ({"cores": ranks, "gpus": ranks} if ranks > most and not known.cores else {})
        hosts = (
            host.model_copy(update=more | _cores(host, ranks, known.cores)) for host in self.hosts if host not in beside
        )
        return self.model_copy(update={"hosts": (*beside, *hosts)})

    def crowded(self, hosts: list[int]) -> bool:
        """Whether ranks on these hosts, by their index in `machines()`, are more than the cores that they share."""
        if self.shared_cores:
            return len(hosts) > self.shared_cores
        ranks = Counter(hosts)
        machines = islice(self.machines(), max(ranks, default=-1) + 1)
        return any(host.gpus is None and ranks[index] > host.cores for index, host in enumerate(machines))


def _cores(host: Host, ranks: int, recorded: int | None) -> dict[str, int]:
    """The cores of a recorded machine with so many ranks; nothing if it has no more than were fitted, or the machine is not known.

    Fitted costs contain what its libraries' threads took of cores that ranks needed: such threads then have cores of their own.
    """
    if not recorded or ranks <= host.ranks:
        return {}
    spared = host.cores <= recorded  # the fitted ranks left cores to such threads
    return {"cores": recorded if spared or ranks > recorded else ranks * host.cores // host.ranks}


def one_rank_a_host(ranks: int, cores: int = 1, gpu: Gpu | None = None) -> Cluster:
    """The cluster assumed when none is given: every rank has a host of its own, 10 Gbit/s between them.

    Args:
        cores: of each host, one for each thread of a rank.
        gpu: that each host has.
    """
    host = {"count": max(1, ranks), "cores": cores, "slots": 1} | ({"gpu": gpu} if gpu else {})
    return Cluster(name="one rank a host, 10 Gbit/s", hosts=(Host.model_validate(host),), network=ASSUMED)


def read(text: str | os.PathLike[str], gpus_per_host: int | None = None, setting: str = "--cluster") -> Cluster:
    """The cluster or profile in a TOML file, or of hosts of one kind: "p3.8xlarge*4".

    Args:
        gpus_per_host: workers that are placed on each host; as many as it has GPUs, or cores, if None.
        setting: that gave it, for errors.

    Raises:
        WrongSetting: no such file or kind of host, another schema, a wrong unit or key, or hosts with fewer GPUs.
    """
    from sim.platform import catalogue

    text = text_of(setting, text)
    return (catalogue.cluster_of(text) or _from_file(text, setting)).with_each(gpus_per_host)


def _from_file(path: str, setting: str) -> Cluster:
    if not names_a_file(path):
        from sim.platform import catalogue

        allowed = f"a file, or {catalogue.hosts_near(path.partition('*')[0])}, also times a number"
        raise WrongSetting(setting, path, allowed)
    table = read_toml(path, setting)
    if table.get("schema") != SCHEMA:
        raise WrongSetting(
            f"{path}: schema", table.get("schema"), f"{SCHEMA} (make the profile again with calibration.fit)"
        )
    found = validated(Cluster, table, path)
    told = "network" in found.model_fields_set  # by the file, or by the types of its hosts
    return found if told else found.model_copy(update={"network": ASSUMED})


@lru_cache(maxsize=1024)
def slowest(links: int) -> tuple[float, float]:
    """Mean and standard deviation of the largest of so many independent standard normal numbers."""
    import numpy as np

    points = 2000  # of the integrals, which are then right within 1e-3
    ranks = ((np.arange(points) + 0.5) / points) ** (1 / links)  # of the largest, in one normal distribution
    largest = np.array([*map(NormalDist().inv_cdf, ranks.tolist())])
    return float(largest.mean()), float(largest.std())
