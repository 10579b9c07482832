"""Texts as nccl-tests print them, of planted links."""

from collections.abc import Callable, Sequence

FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n, "broadcast": lambda n: 1.0}
OF = {"all_reduce": ("sum", -1), "all_gather": ("none", -1), "broadcast": ("none", 0)}
HEADING = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def text(
    seconds: Callable[[int], float],
    ranks: int = 4,
    hosts: int = 4,
    collective: str = "all_reduce",
    device: str = "NVIDIA A100-SXM4-40GB",
    sizes: Sequence[int] = tuple(8 * 2**power for power in range(25)),
    starting: bool = False,
) -> str:
    """What a test of so many ranks prints.

    Args:
        seconds: that a call takes of so many bytes.
        starting: whether it says which collective it is, as newer versions do.
    """
    lines = [f"# Collective test starting: {collective}_perf"] if starting else []
    lines += ["# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20", "#"]
    lines.append("# Using devices")
    for rank in range(ranks):
        where = f"node{rank * hosts // ranks}"
        lines.append(f"#  Rank {rank:2} Group  0 Pid {2748 + rank:6} on {where:>10} device  0 [0x01] {device}")
    lines += HEADING.rstrip("\n").splitlines()
    (redop, root), total = OF[collective], 0.0
    for size in sizes:
        micro = seconds(size) * 1e6
        algbw = size / micro / 1e3
        busbw = algbw * FACTOR[collective](ranks)
        total += busbw
        measured = f"{micro:8.2f} {algbw:7.2f} {busbw:7.2f}      0"
        lines.append(f"{size:12} {size // 4:13}     float {redop:>7} {root:7} {measured} {measured}")
    lines += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {total / max(1, len(sizes)):g}", "#"]
    return "\n".join(lines) + "\n"
