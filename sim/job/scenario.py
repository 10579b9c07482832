"""All that a world needs to run: the protocol, the model, the cluster, the length and the random seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any, ClassVar, NamedTuple

from sim.base.errors import WrongSetting
from sim.base.ranges import JOB, LONGEST_S, MOST_RANKS, SHORTEST_S, check_integer
from sim.job import measured_steps, named_gpus, reading
from sim.job.draws import Draws
from sim.job.replay import header_of
from sim.job.traffic import Traffic
from sim.language import library
from sim.language.text import Text
from sim.laws import Constant, Stragglers, checked
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.model.variable_placement import check_strategy
from sim.model.workload import Variable, Workload
from sim.platform import named_links
from sim.platform.cluster import Cluster, Host, Link, one_rank_a_host
from sim.platform.named_links import LINK
from sim.protocols.base import Protocol, with_settings

LATER: Any = None  # of fields that __post_init__ fills where they are not given
KINDS = {  # of fields that are objects, and what makes one
    "protocol": (Protocol, 'a Protocol: trainsim.make_protocol("amb")'),
    "workload": (Workload, 'a Workload: trainsim.read_workload("mnist")'),
    "cluster": (Cluster | None, 'a Cluster: trainsim.read_cluster("p3.8xlarge*4")'),
    "stragglers": (Stragglers, 'Stragglers: trainsim.read_stragglers("niagara*0.01")'),
}


class Place(NamedTuple):
    """A GPU.

    Args:
        host: the index of its host in the cluster's machines.
        number: which of the host's.
    """

    host: int
    number: int


@dataclass(frozen=True)
class Scenario:
    """One job.

    Args:
        protocol: made by trainsim.make_protocol, or a text of a class of one's own (trainsim.language.text.Text).
        workload: the model, as trainsim.read_workload reads it.
        workers: ranks besides the master or the servers; 0 is one process alone, undistributed.
        steps: measured steps, after `warmup` steps that are left out.
        batch: samples per worker and step.
        cluster: one rank a host if None; a finished scenario always has a cluster and a batch.
        stragglers: law of the induced sleep of each worker and step, seconds, or of another cause of slow workers.
        stragglers_name: the user's name for it.
        seed: of all random numbers; equal seeds and replications have equal ones, whatever else differs.
        test_size: samples of an evaluation; 0 is none.
        evaluate_every: steps from one evaluation to the next.
        servers: number of parameter servers, for protocols that have them; else 1 (the master), or 0 where there is none.
        placement: rule by which variables are placed on them, round-robin or greedy.
        variable_partitions: parts that each variable is cut into before placement.
        servers_on: own: servers, or the master, fill slots before the workers do; workers: they are put on the workers' hosts in
            turn, and take no slot (TF_PS_IN_WORKER of seed 004).
        sleeps_of: the replication whose sleeps all replications have; each its own if None.

    Raises:
        WrongSetting: a number is out of range, an object of another kind, or there are more ranks than slots.
    """

    protocol: Protocol
    workload: Workload
    workers: int = 3
    steps: int = 100
    warmup: int = 10
    batch: int = LATER  # the workload's own if None
    cluster: Cluster = LATER
    stragglers: Stragglers = field(default_factory=lambda: Constant(value=0))
    stragglers_name: str = "none"
    seed: int = 0
    test_size: int = 0
    evaluate_every: int = 10
    sleeps_of: int | None = None
    servers: int = 1
    placement: str = "round-robin"
    variable_partitions: int = 1
    servers_on: str = "own"
    header = header_of
    unused: ClassVar[tuple[str, ...]] = ()  # options of servers that were given, and that this protocol does not use

    def __post_init__(self):
        if isinstance(self.protocol, Text):
            object.__setattr__(self, "protocol", with_settings(self.protocol))
        for name, (kind, made) in KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise WrongSetting(f"--{name}", getattr(self, name), made)
        if self.batch is None:
            object.__setattr__(self, "batch", self.workload.batch)
        check_integer("--servers", self.servers, 1 if self.served else 0, MOST_RANKS)
        check_strategy(self.placement)
        if self.servers_on not in ("own", "workers"):
            raise WrongSetting("--servers-on", self.servers_on, "own or workers")
        for name, (least, most) in JOB.items():
            check_integer(f"--{name.replace('_', '-')}", getattr(self, name), least, most)
        defaults, unused = {one.name: one.default for one in fields(self)}, []
        for name, value in self._without_servers.items():
            given = getattr(self, name)
            unused += [f"--{name.replace('_', '-')} {given}"] * (given not in (value, defaults[name]))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "unused", tuple(unused))
        if self.workers < 1 and not self.protocol.text_class.alone:
            raise WrongSetting("--workers", self.workers, f"an integer from 1 with {self.protocol.name}")
        self.protocol.check(self)
        self.stragglers.check(self)
        if self.servers:
            _ = self.traffic.server_slices
        if self.cluster is None:
            beside = self.servers_on == "workers" and self.workers
            hosts, threads = self.workers if beside else self.ranks, 2 if self.protocol.overlaps else 1
            gpu = next((step.gpu for step in self.workload.step if step.gpu), None)
            found = one_rank_a_host(hosts, threads, measured_steps.named(gpu) if gpu else None)
            object.__setattr__(self, "cluster", found)
        _ = self.hosts
        checked.try_out(self.stragglers, self.draws)

    def __getstate__(self):
        """Only what was given: a process that gets the scenario computes the rest again."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"unused": self.unused}

    @property
    def _without_servers(self) -> dict[str, int | str]:
        """The fields that this protocol does not use, because it has no servers or a single one, and the values that they then have."""
        if not self.served:
            return {"servers": 0, "servers_on": "own", "placement": "round-robin", "variable_partitions": 1}
        found: dict[str, int | str] = {} if self.protocol.has_servers else {"servers": 1, "variable_partitions": 1}
        return found | ({"placement": "round-robin"} if found.get("servers", self.servers) == 1 else {})

    def check_evaluation(self) -> None:
        """Raise WrongSetting if the first of several servers is to evaluate, which holds not all parameters; TensorFlow's workers can."""
        if self.servers > 1 and self.test_size:
            allowed = "0 with several servers, of which none holds all parameters; TensorFlow's runtime can"
            raise WrongSetting("--test-size", self.test_size, allowed)

    def check_computing(self) -> None:
        """Refuse a job of which nothing says how long computing takes, before it is simulated.

        Raises:
            WrongSetting: it takes no time, or beyond all range, or only a CPU's speed is known where GPUs compute; see
            sim.job.named_gpus.
        """
        named_gpus.check(self)
        costs, name = self.costs, self.workload.name
        if not (costs.compute(self.batch) or costs.partition(self.batch)):
            allowed = "a workload that says what computing takes: step, flops_per_sample or costs; or a profile of it"
            raise WrongSetting("--workload", f"{name}, of which nothing does", allowed)
        longest_s = max(costs.compute(self.batch), costs.partition(self.batch))
        if longest_s < SHORTEST_S:
            allowed = f"samples that take at least {SHORTEST_S:g} seconds; these take {longest_s:g}"
            raise WrongSetting("--batch", self.batch, allowed)
        for option, samples, seconds in (
            ("--batch", self.batch, costs.compute(self.batch)),
            ("--test-size", self.test_size, costs.evaluate(self.test_size)),
        ):
            if seconds > LONGEST_S:
                allowed = f"samples that take at most {LONGEST_S:,} seconds; these take {seconds:,.0f}"
                raise WrongSetting(option, samples, allowed)
        if self.workload.is_nominal and self.cluster.costs_of(self.workload) is None:
            for host in self.cluster.hosts:
                if host.gpus and host.gpu is None and "speed" not in host.model_fields_set:
                    allowed = 'gpu = "V100" or the like; or its speed, relative to a nominal core of 100 Gflop/s; or a workload\'s '
                    allowed += "step or costs, or a profile"
                    raise WrongSetting(
                        f"--cluster: hosts: speed of {host.name}", f"nothing, and {host.gpus} gpus", allowed
                    )

    @property
    def ranks(self) -> int:
        """Processes: the master, or the servers if any, and then the workers; or one alone."""
        return self.servers + self.workers

    @property
    def updates_per_step(self) -> int:
        """Updates of a server in which every worker contributes once on average."""
        return self.protocol.updates_per_step(self.workers)

    @property
    def global_batch(self) -> int:
        """Samples of an update, of all workers whose gradients it has; where time cuts computing short, at most."""
        return self.batch * self.protocol.gradients_per_update(self.workers)

    @cached_property
    def hosts(self) -> list[int]:
        """The index in the cluster's machines of each rank's host, shape (ranks,).

        Raises:
            WrongSetting: more ranks than slots.
        """
        if self.servers_on == "own" or self.workers == 0:
            return self.cluster.placement(self.ranks, self.servers)
        workers = self.cluster.placement(self.workers, 0)
        used = sorted(set(workers))
        return [used[server % len(used)] for server in range(self.servers)] + workers

    @cached_property
    def places(self) -> list[int]:
        """The entry of the cluster's hosts that each machine is of, by its index; up to the last machine that has a rank."""
        each = chain.from_iterable(repeat(place, host.count) for place, host in enumerate(self.cluster.hosts))
        return list(islice(each, max(self.hosts) + 1))

    @cached_property
    def kinds(self) -> list[Host]:
        """The kind of each machine; machines of one kind have its name and count."""
        return [self.cluster.hosts[place] for place in self.places]

    def on(self, **changes: Any) -> Scenario:
        """The same job on a cluster of which some fields are others."""
        return replace(self, cluster=self.cluster.model_copy(update=changes))

    @cached_property
    def machines(self) -> list[Host]:
        """The kind of each machine as in `kinds`, its speed relative to what the costs are of."""
        return named_gpus.machines(self)

    @cached_property
    def speeds(self) -> list[float]:
        """The speed of each rank's core or GPU, relative to what the costs are of."""
        return [self.machines[host].speed for host in self.hosts]

    @property
    def computing_hosts(self) -> list[int]:
        """The host of each rank that computes gradients."""
        return self.hosts[self.servers :] or self.hosts

    @cached_property
    def on_named_gpus(self) -> bool:
        """Whether computing is known from the names of GPUs alone."""
        return named_gpus.covers(self)

    @cached_property
    def gpus(self) -> list[Place | None]:
        """The GPU of each rank; None where the host has none. Ranks of a host take its GPUs in turn, as real runs do."""
        placed: Counter[int] = Counter()
        found: list[Place | None] = []
        for host in self.hosts:
            several = self.machines[host].gpus
            found.append(Place(host, placed[host] % several) if several else None)
            placed[host] += 1
        return found

    @cached_property
    def gpus_shared(self) -> bool:
        """Whether several workers compute on one GPU."""
        taken = [place for place in self.gpus[self.servers :] if place]
        return len(set(taken)) < len(taken)

    @cached_property
    def apart(self) -> bool:
        """Whether each rank has a host of its own."""
        return len(set(self.hosts)) == self.ranks

    @cached_property
    def threaded(self) -> bool:
        """Whether other threads of a runtime work beside its ranks."""
        return bool(self.costs.background != Line() or self.network.background_s or self.local.background_s)

    @cached_property
    def by_all_ranks(self) -> bool:
        """Whether a step is over when the last rank has ended it, with all samples: without a master, unless rank 0 stands for all."""
        from sim.protocols import is_ours

        together = self.protocol.text_class.in_step and is_ours(self.protocol)
        return self.protocol.masterless and self.workers > 0 and not together

    @cached_property
    def served(self) -> tuple[Variable, ...]:
        """The variables that the master or the servers hold."""
        return self.protocol.served(self.workload)

    @cached_property
    def summed(self) -> tuple[Variable, ...]:
        """The variables that workers sum among themselves."""
        return self.protocol.summed(self.workload)

    @cached_property
    def summed_items(self) -> int:
        """Numbers in them."""
        return sum(variable.size for variable in self.summed)

    @property
    def senders(self) -> list[int]:
        """The workers that send and receive: the first of each host, if gradients are aggregated there; else all."""
        workers = range(self.servers, self.ranks)
        if not (self.protocol.local_aggregation and self.served):
            return [*workers]
        return [*{self.hosts[worker]: worker for worker in reversed(workers)}.values()]

    @cached_property
    def gathered_variables(self) -> tuple[Variable, ...]:
        """The variables of which workers hand rows to one another."""
        return self.protocol.gathered(self.workload)

    def worker_number(self, rank: int) -> int:
        """1 for the first worker, whatever the number of servers, so that its random numbers are the same; a server's is its rank."""
        return rank - self.servers + 1 if rank >= self.servers else rank

    def rank_of(self, worker: int) -> int:
        """The rank of a worker by its number."""
        return worker + self.servers - 1

    @cached_property
    def draws(self) -> Draws:
        """The random numbers of it."""
        return Draws(self)

    @cached_property
    def traffic(self) -> Traffic:
        """The sizes of what travels and is updated."""
        return Traffic(self)

    @property
    def rounds(self) -> int:
        """Steps run: warm-up and measured."""
        return self.warmup + self.steps

    @cached_property
    def costs(self) -> Costs:
        """Measured on the cluster if it was calibrated for this workload; else of its GPUs, or the workload's nominal ones."""
        found = reading.with_waits(self, self._costs)
        return found.with_evaluation() if self.test_size else found

    @property
    def _costs(self) -> Costs:
        if self.has_measured_costs:
            found = self.cluster.costs_of(self.workload) or self.workload.costs
            return found.of_batch(self.micro_batch).among(self.workers, len(set(self.computing_hosts)))
        found = named_gpus.costs(self) or named_gpus.costs_of_unnamed(self) or self.workload.costs
        return found.model_copy(update=named_gpus.of_cores(self)) if named_gpus.cores_serve(self) else found

    @property
    def micro_batch(self) -> int:
        """Samples of a worker that are computed at once, where gradients of several minibatches are accumulated."""
        return self.batch // getattr(self.protocol, "accumulate", 1)

    @property
    def has_measured_costs(self) -> bool:
        """Whether costs are measured on the cluster, or given for the workload."""
        return "costs" in self.workload.model_fields_set or self.cluster.costs_of(self.workload) is not None

    @cached_property
    def sum_library(self) -> str:
        """The library that sums: NCCL where all workers have GPUs, Gloo under PyTorch on cores, and else MPI, as in runs over it."""
        cluster, engines = self.cluster, self.cluster.provenance.engines if self.cluster.provenance else ()
        if cluster.library or cluster.poll_s or {"tensorflow", "numpy"}.intersection(engines):
            return library.MPI
        if all(self.kinds[host].gpus for host in {*self.computing_hosts}):
            return library.NCCL
        return library.GLOO if "torch" in engines else library.MPI

    def algorithm(self, name: str) -> str:
        """The algorithm by which workers sum that is called so: what the library takes for `auto`."""
        return library.chosen(self.sum_library, name)

    @cached_property
    def network(self) -> Link:
        """The link between hosts, as the protocol's messages find it."""
        cluster = self.cluster
        link = cluster.library if cluster.library and self.protocol.in_library else cluster.network
        hosts, ring = len(set(self.hosts)), getattr(self.protocol, "algorithm", None) == "ring"
        link = named_links.reached(link, LINK).for_items(self.item_bytes / ITEM_BYTES)
        if self.servers:
            return link
        each, inner = len(self.hosts) / hosts, self.cluster.local
        link = link.among(hosts, each, ring)
        by_nccl = self.summed and self._algorithm == "auto" and self.sum_library == library.NCCL
        return link.with_trees(hosts, each, inner.latency_s + 2 * inner.overhead_s) if by_nccl else link

    @property
    def _algorithm(self) -> str:
        return getattr(self.protocol, "algorithm", "auto")

    @cached_property
    def local(self) -> Link:
        """The link within a host likewise. Rounds of trees over hosts have the latency within hosts in them."""
        link, times = self.cluster.local, self.item_bytes / ITEM_BYTES
        found = named_links.reached(link, named_links.within(link)).for_items(times)
        summed = self.algorithm(self._algorithm) == "ring" and not self.servers and len(set(self.hosts)) > 1
        in_trees = summed and self.network.tree_s is not None
        return found.model_copy(update={"latency_s": 0.0, "overhead_s": 0.0}) if in_trees else found

    @property
    def item_bytes(self) -> float:
        """Bytes that a number of the gradients takes on a link."""
        return ITEM_BYTES if self.servers else self.workload.gradient_bytes or self.costs.item_bytes

    def without_stragglers(self) -> Scenario:
        """The same job with no induced sleep."""
        return replace(self, stragglers=Constant(value=0), stragglers_name="none")

    @property
    def slowed(self) -> bool:
        """Whether any stragglers are induced."""
        return self.stragglers != Constant(value=0)
