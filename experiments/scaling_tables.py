"""Published throughput of synchronous training on parameter servers, and what is documented about the machines.

Images per second on synthetic data, 64 images a GPU and step. Sources:

- BUGLIARELLO: E. Bugliarello, "Distributed TensorFlow: A performance evaluation", CSCS, September 2017: InceptionV3, TensorFlow
  1.1.0, servers on the workers' hosts, the best number of servers.
- GOOGLE: TensorFlow's performance benchmarks page, 2017: p2.8xlarge, variable_update=distributed_replicated.
- HOROVOD: Horovod README, September 2017: 16 GPUs on 4 hosts, 25 Gbit/s, parameter servers against one GPU.
"""

from __future__ import annotations

from typing import NamedTuple

GBIT = 1e9 / 8  # bytes


class Platform(NamedTuple):
    """A kind of host, by what is documented about it.

    Args:
        single: images/s of InceptionV3 on one GPU, measured; the model's only other input from the platform.
        line_bytes_per_s: of its port.
        sustained_bytes_per_s: see sim.platform.cluster.Link; None where nothing limits the port in the long run.
        why: where the two come from.
    """

    name: str
    single: float
    gpus: int
    cores: int
    line_bytes_per_s: float
    sustained_bytes_per_s: float | None
    why: str


ARIES = "Cray Aries, 10 GB/s into a node (Alverson et al., Cray XC Series Network, 2012); gRPC gets less"
CREDITS = (
    "bursts of 10 Gbit/s on credit, in the long run the share by vCPUs (4 of 32) of a p2.8xlarge's 10: inferred, EC2 says 'High'; "
    "another type of 4 vCPUs was measured at 1.24 and 10.04 Gbit/s (cloudonaut.io, EC2 network performance cheat sheet, 2018)"
)
PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("Piz Daint", 138.23, 1, 12, 10e9, None, ARIES),
        Platform("p2.xlarge", 30.55, 1, 4, 10 * GBIT, 1.25 * GBIT, CREDITS),
        Platform("p2.8xlarge", 30.55, 8, 32, 10 * GBIT, None, "10 Gbit/s (EC2 instance types)"),
    )
}


class Row(NamedTuple):
    """One measurement; `replicated` is variable_update=distributed_replicated, else parameter_server."""

    platform: str
    gpus: int
    servers: int
    replicated: bool
    images_per_s: float


BUGLIARELLO = (
    Row("Piz Daint", 2, 1, False, 264.57),
    Row("Piz Daint", 4, 3, True, 523.38),
    Row("Piz Daint", 8, 2, False, 1018.18),
    Row("Piz Daint", 64, 40, False, 7118.31),
    Row("Piz Daint", 128, 116, False, 9219.70),
    Row("p2.xlarge", 2, 2, True, 57.45),
    Row("p2.xlarge", 4, 4, True, 114.57),
    Row("p2.xlarge", 8, 8, True, 228.41),
    Row("p2.xlarge", 64, 64, False, 996.32),
    Row("p2.xlarge", 128, 128, False, 1077.59),
    Row("p2.8xlarge", 2, 1, True, 58.38),
    Row("p2.8xlarge", 4, 1, True, 116.34),
    Row("p2.8xlarge", 8, 1, True, 230.75),
    Row("p2.8xlarge", 64, 8, True, 1731.31),
    Row("p2.8xlarge", 128, 16, True, 3333.20),
)

GOOGLE = {  # model: images/s of one GPU, and by number of GPUs
    "inception_v3": (30.8, {16: 459, 32: 902, 64: 1783}),
    "resnet50": (51.5, {16: 751, 32: 1388, 64: 2744}),
}

HOROVOD = {  # where variables lie: images/s of 16 GPUs on parameter servers, by model
    "on GPUs": {"inception_v3": 1345.8, "resnet101": 959.6, "vgg16": 74.7},
    "on CPUs": {"inception_v3": 1576.4, "resnet101": 1168.8, "vgg16": 79.5},
}
HOROVOD_SINGLE = {"inception_v3": 134.4, "resnet101": 119.4, "vgg16": 130.9}  # images/s of one GPU
