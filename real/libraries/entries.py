"""Libraries that sum gradients, as runtimes: Horovod, and TensorFlow's own collectives. MPI joins their ranks."""

from __future__ import annotations

from importlib.util import find_spec

from real.runtime import Joined, Runtime, refuse_algorithms, refuse_gpus, refuse_rows
from sim.base.errors import WrongSetting
from sim.texts import Allreduce, Horovod

HOW_TO_GET_HOROVOD = "a Python with Horovod: `make horovod` builds it once and installs it"


class ByHorovod(Runtime):
    """Horovod over Gloo."""

    world, about, timeline = "horovod", "Horovod", True

    def has(self, protocol):
        return protocol.text_class in (Allreduce, Horovod)

    def is_home_of(self, protocol):
        return protocol.text_class is Horovod and not self.missing(protocol)

    def missing(self, protocol):
        gone = protocol.text_class is Horovod and not find_spec("horovod")
        return "Horovod is not installed (`make horovod`)" if gone else ""

    def check(self, scenario):
        refuse_rows(scenario, self.world)
        refuse_algorithms(scenario.protocol, self.world)

    def check_shared(self, scenario):
        from real.libraries.horovod_allreduce import tuned

        if told := tuned(scenario):
            allowed = "Horovod's own in a campaign: a process can be told another only once; use real.run"
            raise WrongSetting("--set", ", ".join(f"{name}={value}" for name, value in told.items()), allowed)

    def check_options(self, given):
        refuse_gpus(given.device)
        if not find_spec("horovod"):
            raise WrongSetting("--runtime", self.world, HOW_TO_GET_HOROVOD)

    def joined(self, comm, jobs, timeline=None):
        from real.libraries import horovod_allreduce

        return JoinedLibrary(horovod_allreduce.Horovod(comm, timeline), comm)


class ByCollectives(Runtime):
    """MultiWorkerMirroredStrategy with RING."""

    world, about = "tensorflow", "TensorFlow's own servers or collectives"

    def has(self, protocol):
        return protocol.text_class is Allreduce

    def check(self, scenario):
        refuse_rows(scenario, self.world)
        refuse_algorithms(scenario.protocol, self.world)

    def check_options(self, given):
        refuse_gpus(given.device)

    def joined(self, comm, jobs, timeline=None):
        from real.libraries.tensorflow_collectives import Collectives

        library = Collectives(comm)
        library.begin(comm, *jobs[0])  # its server has to be there before another run has TensorFlow do anything
        return JoinedLibrary(library, comm, ends=False)


class JoinedLibrary(Joined):
    """One rank's part of a library.

    Args:
        ends: whether the library's threads can be stopped.
    """

    def __init__(self, library, comm, ends: bool = True):
        self._library, self._comm, self.ends = library, comm, ends

    def runner(self, training, progress=True):
        from real.libraries.session import LibrarySession

        return LibrarySession(self._library, self._comm, training, progress)
