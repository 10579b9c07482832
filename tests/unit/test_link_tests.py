"""Links as other tools than nccl-tests print them (calibration.fit --from nccl-tests): what was planted is found."""

from __future__ import annotations

import json

import pytest

from calibration import nccl_links
from sim.base.errors import WrongSetting
from sim.platform.cluster import ASSUMED

SIZES = [4**power for power in range(2, 13)]
OSU = "# OSU MPI{gpu} Allreduce Latency Test v7.2\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
OLD_OSU = "# OSU MPI Allreduce Latency Test\n# Size          Latency (us)\n"
IMB = """#    Intel(R) MPI Benchmarks 2021.8, MPI-1 part
# Benchmarking Barrier
# #processes = 8
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         1.04         1.05         1.05
#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 8
# ( 248 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.05         0.05
"""
PERFTEST = """                    RDMA_Write {which}
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Mtu             : 4096[B]
---------------------------------------------------------------------------------------
"""


def fitted(tmp_path, text: str, ranks: int | None = None):
    path = tmp_path / "printed.txt"
    path.write_text(text)
    return nccl_links.profile([str(path)], "tested", ranks)


@pytest.mark.parametrize(
    ("heading", "row", "ranks"),
    [
        (OSU.format(gpu=""), "{size}   {us:.2f}   {least:.2f}    {us:.2f}    1000", 8),
        (OSU.format(gpu="-CUDA"), "{size}   {us:.2f}   {least:.2f}    {us:.2f}    1000", 8),
        (OLD_OSU, "{size}    {us:.2f}", 8),
        (IMB, "   {size}   1000   {least:.2f}   {least:.2f}   {us:.2f}", None),
    ],
)
def test_an_allreduce_of_mpi_is_read(tmp_path, heading, row, ranks):
    """12 us, and 4 GB/s, on 8 ranks: as a ring 14 messages, and 7/4 of the bytes."""
    rows = [row.format(size=size, us=12 + size / 4e3, least=9 + size / 5e3) for size in SIZES]
    found = fitted(tmp_path, heading + "\n".join(rows) + "\n", ranks)
    assert (found.provenance.workers, found.network.latency_s) == (8, pytest.approx(12e-6 / 14, rel=0.01))
    assert found.network.bandwidth_bytes_per_s == pytest.approx(7e9, rel=0.01)


def test_the_ranks_of_osu_are_asked_for(tmp_path):
    with pytest.raises(WrongSetting, match="--ranks: missing"):
        fitted(tmp_path, OSU.format(gpu="") + "4 12.0 11.0 13.0 1000\n1048576 274.1 273.1 275.1 1000\n")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("# OSU MPI Latency Test v7.2\n# Size          Latency (us)\n", "{size}   {us:.2f}"),
        (
            "# Benchmarking PingPong\n# #processes = 2\n       #bytes #repetitions      t[usec]   Mbytes/sec\n",
            "{size} 1000 {us:.2f} 1.0",
        ),
        (
            PERFTEST.format(which="Latency Test")
            + " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
            "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n",
            "{size}  1000   1.0   9.0   {us:.2f}    {us:.2f}   0.05   1.8   3.57",
        ),
    ],
)
def test_messages_between_two_are_read(tmp_path, text, rows):
    found = fitted(tmp_path, text + "\n".join(rows.format(size=size, us=2 + size / 1e4) for size in SIZES))
    assert found.network.latency_s == pytest.approx(2e-6, rel=0.02)
    assert found.network.bandwidth_bytes_per_s == pytest.approx(1e10, rel=0.02)


IPERF = {
    "start": {"test_start": {"num_streams": 4}},
    "end": {"sum_received": {"seconds": 10.0, "bits_per_second": 9.19e9}},
}
SPEEDS = PERFTEST + " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"


@pytest.mark.parametrize(
    ("text", "gbit_per_s"),
    [
        (json.dumps(IPERF, indent=1), 9.19),
        (json.dumps(IPERF), 9.19),
        (
            "[  5]   0.00-10.00  sec  2.7 GBytes  2.30 Gbits/sec                  receiver\n"
            "[SUM]   0.00-10.00  sec  10.7 GBytes  9.20 Gbits/sec   12             sender\n"
            "[SUM]   0.00-10.00  sec  10.7 GBytes  9.19 Gbits/sec                  receiver\n",
            9.19,
        ),
        (
            SPEEDS.format(which="BW Test", unit="Gb/sec")
            + " 65536      5000             92.57      92.31   \t\t   0.176067\n",
            92.31,
        ),
        (
            SPEEDS.format(which="BW Test", unit="MB/sec")
            + " 65536      5000           0.00      11728.47   \t\t   0.18\n",
            98.385,
        ),
        (
            SPEEDS.format(which="Bidirectional BW Test", unit="Gb/sec") + " 65536  5000   190.0    184.62    0.35\n",
            92.31,
        ),
        (
            "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n1                       2.50\n4194304             11538.75\n",
            92.31,
        ),
    ],
)
def test_a_wire_has_a_bandwidth_that_collectives_do_not_reach(tmp_path, text, gbit_per_s):
    found = fitted(tmp_path, text)
    assert found.network.bandwidth_bytes_per_s * 8e-9 == pytest.approx(gbit_per_s, rel=1e-3)
    assert found.network.latency_s == pytest.approx(ASSUMED.latency_s, rel=1e-3)
    assert any("a wire's bandwidth, which collectives do not reach" in note for note in found.provenance.notes)
