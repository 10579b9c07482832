"""Horovod for real, over Gloo: ranks that MPI has joined give it the rendezvous that horovodrun would."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from dataclasses import dataclass

from real.servers.tasks import LOOPBACK
from real.training.tensorflow_setup import tensorflow
from real.training.trainee import Training
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario

LOOPBACK_INTERFACE = "lo"
FUSION_BYTES, CYCLE_S = 128 * 2**20, 1e-3  # what Horovod does untold
TUNING = ("HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME")


@dataclass(frozen=True)
class Slot:
    """A rank's place, as Horovod counts: `local` is its number on its host, `cross` its host's among hosts that have such a one."""

    hostname: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


def slots(hosts: list[str]) -> list[Slot]:
    """The slot of each rank, by the names of their hosts, shape (ranks,)."""
    seen: Counter[str] = Counter()
    local = []
    for host in hosts:
        local.append(seen[host])
        seen[host] += 1
    found = []
    for rank, (host, number) in enumerate(zip(hosts, local, strict=True)):
        across = [r for r in range(len(hosts)) if local[r] == number]
        found.append(Slot(host, rank, len(hosts), number, seen[host], across.index(rank), len(across)))
    return found


def tuned(scenario: Scenario) -> dict[str, str]:
    """The protocol's settings that differ from Horovod's defaults, by Horovod's names."""
    protocol, found = scenario.protocol, {}
    if getattr(protocol, "fusion_bytes", FUSION_BYTES) != FUSION_BYTES:
        found["HOROVOD_FUSION_THRESHOLD"] = str(protocol.fusion_bytes)
    if getattr(protocol, "cycle_s", CYCLE_S) != CYCLE_S:
        found["HOROVOD_CYCLE_TIME"] = str(1e3 * protocol.cycle_s)
    return found


def environment(slot: Slot, address: str, port: int, interface: str | None) -> dict[str, str]:
    """The variables that horovodrun would have set for a rank."""
    settings = {
        "HOROVOD_HOSTNAME": slot.hostname,
        "HOROVOD_RANK": slot.rank,
        "HOROVOD_SIZE": slot.size,
        "HOROVOD_LOCAL_RANK": slot.local_rank,
        "HOROVOD_LOCAL_SIZE": slot.local_size,
        "HOROVOD_CROSS_RANK": slot.cross_rank,
        "HOROVOD_CROSS_SIZE": slot.cross_size,
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    if interface:
        settings["HOROVOD_GLOO_IFACE"] = interface
    return {name: str(value) for name, value in settings.items()}


class Horovod:
    """Horovod on this rank.

    It begins anew for each run, and is shut down after it, because its threads would take time from other runs. With another fusion
    buffer or cycle than the default it cannot begin again. The second initialisation of a process would write past the end of a
    vector (horovod/common/parameter_manager.cc, SetValue of a fixed parameter). It then stays as it is.
    """

    name = "horovod"

    def __init__(self):
        from importlib.metadata import version

        self.versions = {"horovod": version("horovod")}
        self._interface = os.environ.get("HOROVOD_GLOO_IFACE")
        self._stays = None

    def begin(self, comm, scenario: Scenario, training: Training) -> None:
        """Initialise Horovod over the ranks of `comm`.

        Raises:
            WrongSetting: it keeps the settings of another run.
        """
        tensorflow(training.threads, training.device)
        import horovod.tensorflow as hvd

        self._hvd, told = hvd, tuned(scenario)
        if self._stays == (scenario.ranks, told):
            return
        if self._stays:
            raise WrongSetting("--protocol horovod", told, f"one setting a process: it has begun with {self._stays}")
        self._stays = (scenario.ranks, told) if told else None
        for name in TUNING:
            os.environ.pop(name, None)
        os.environ.update(told)
        self._meet(comm)

    def _meet(self, comm) -> None:
        gathered = comm.allgather if comm is not None else lambda mine: [mine]
        hosts = gathered(socket.gethostname())
        plan, rank = slots(hosts), comm.rank if comm is not None else 0
        interface = self._interface or (LOOPBACK_INTERFACE if len(set(hosts)) == 1 else None)
        server = Rendezvous(plan, address_of(interface)) if rank == 0 else None
        address, port = gathered(server and server.address)[0]
        os.environ.update(environment(plan[rank], address, port, interface))
        self._hvd.init()
        if server:
            server.stop()

    def sums(self, tensors: list, fused: bool) -> list:
        """Sum gradients as a group, or each by itself as soon as all ranks have it; Horovod may fuse those."""
        hvd = self._hvd
        if fused:
            return hvd.grouped_allreduce(tensors, op=hvd.Sum)
        return [hvd.allreduce(tensor, op=hvd.Sum) for tensor in tensors]

    def end(self) -> None:
        """Shut Horovod down on all ranks, if it can be begun again."""
        if not self._stays:
            self._hvd.shutdown()


class Rendezvous:
    """Horovod's own server of addresses, on one address of this host: RendezvousServer listens on all of them."""

    def __init__(self, plan: list[Slot], address: str):
        from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

        self._httpd = RendezvousHTTPServer((address, 0), RendezvousHandler, 0)
        self._httpd.init(plan)
        self.address = self._httpd.server_address[:2]
        self._thread = threading.Thread(target=self._httpd.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """All have met."""
        self._httpd.shutdown()
        self._thread.join()
        self._httpd.server_close()


def address_of(interface: str | None) -> str:
    """The IPv4 address of a network interface; this host's name's if None."""
    import psutil

    if interface == LOOPBACK_INTERFACE:
        return LOOPBACK
    if interface is None:
        return socket.gethostbyname(socket.gethostname())
    return next(a.address for a in psutil.net_if_addrs()[interface] if a.family == socket.AF_INET)
