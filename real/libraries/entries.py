"""Libraries that sum gradients, as runtimes: Horovod, and TensorFlow's own collectives. MPI joins their ranks."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

from real.runtime import Joined, Runtime
from sim.base.errors import WrongSetting
from sim.texts import Allreduce, Horovod

HOW_TO_GET_HOROVOD = "a Python with Horovod: `make horovod` builds it once and installs it"


class Summing(Runtime):
    """A library that sums gradients on CPUs, by a ring."""

    def check(self, scenario):
        if scenario.gathered_variables:
            raise WrongSetting("--set sparse_as_dense", False, f"true with --runtime {self.world}")
        algorithm = getattr(scenario.protocol, "algorithm", "ring")
        if algorithm not in ("auto", "ring"):
            allowed = f"ring, or auto, which is a ring with --runtime {self.world}"
            raise WrongSetting("--set algorithm", algorithm, allowed)

    def check_options(self, given):
        if given.device != "cpu":
            allowed = "cpu where a library sums gradients: Horovod is built with Gloo alone"
            raise WrongSetting("--device", given.device, allowed)


class ByHorovod(Summing):
    """Horovod over Gloo."""

    world, about = "horovod", "Horovod"

    def has(self, protocol):
        return protocol.text_class in (Allreduce, Horovod)

    def is_home_of(self, protocol):
        return protocol.text_class is Horovod and not self.missing(protocol)

    def missing(self, protocol):
        gone = protocol.text_class is Horovod and not find_spec("horovod")
        return "Horovod is not installed (`make horovod`)" if gone else ""

    def check_shared(self, scenario):
        from real.libraries.horovod_allreduce import tuned

        if told := tuned(scenario):
            allowed = "Horovod's own in a campaign: a process can be told another only once; use real.run"
            raise WrongSetting("--set", ", ".join(f"{name}={value}" for name, value in told.items()), allowed)

    def check_options(self, given):
        super().check_options(given)
        if not find_spec("horovod"):
            raise WrongSetting("--runtime", self.world, HOW_TO_GET_HOROVOD)

    def joined(self, comm, jobs):
        from real.libraries import horovod_allreduce
        from real.libraries.session import LibrarySession

        return Joined(partial(LibrarySession, horovod_allreduce.Horovod(), comm))


class ByCollectives(Summing):
    """MultiWorkerMirroredStrategy with RING, whose threads cannot be stopped."""

    world, about = "tensorflow", "TensorFlow's own servers or collectives"

    def has(self, protocol):
        return protocol.text_class is Allreduce

    def joined(self, comm, jobs):
        from real.libraries.session import LibrarySession
        from real.libraries.tensorflow_collectives import Collectives

        library = Collectives(comm)
        library.begin(comm, *jobs[0])  # its server has to be there before another run has TensorFlow do anything
        return Joined(partial(LibrarySession, library, comm), ends=False)
