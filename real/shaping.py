"""How a switch port of a cluster in a box is shaped: a token bucket (tc htb), through which acknowledgements pass first.

Behind the bytes that go the same way an acknowledgement would wait for as long as the bucket takes to fill. A connection whose window
was halved by a loss could then not keep its own direction full, and each loss is one of the stack's packets of 64 KiB, forty-odd of an
Ethernet: two workers, one of which pulls while the other pushes, were a tenth to a quarter slower than either alone. Full duplex ports
do not do that, nor do queues of flows, which Linux's hosts have by default (fq_codel) and this needs no module for.
"""

from __future__ import annotations

BURST_BYTES = 80_000  # a bucket smaller than the largest packet of the stack, 64 KiB and headers, has the kernel cut it: half of its time
QUEUE_S = 0.001  # longer, and MPI's handshakes wait behind bytes that go the same way
# Total length of IP packets (values, masks) up to 83 bytes: acknowledgements of TCP, with times and up to 3 ranges of bytes.
# Words of MPI are longer. One that overtook bytes of its own connection would wait for them all the same.
SHORT = ((0x0000, 0xFFC0), (0x0040, 0xFFF0), (0x0050, 0xFFFC))
AT_LEAST = 0.1  # of the rate that acknowledgements have, if they need it


def commands(device: str, rate_bytes_per_s: float) -> list[str]:
    """What to call for what leaves through a device to have this rate, headers included."""

    def bits(share: float) -> str:
        return f"{rate_bytes_per_s * 8 * share:.0f}bit"

    buckets = f"burst {BURST_BYTES} cburst {BURST_BYTES} quantum {BURST_BYTES}"
    queue = f"bfifo limit {BURST_BYTES + rate_bytes_per_s * QUEUE_S:.0f}"
    classes = {"1:2": (AT_LEAST, 0), "1:3": (1 - AT_LEAST, 1)}
    lines = [
        f"tc qdisc add dev {device} root handle 1: htb default 3",
        f"tc class add dev {device} parent 1: classid 1:1 htb rate {bits(1)} {buckets}",
    ]
    for name, (share, priority) in classes.items():
        shape = f"htb rate {bits(share)} ceil {bits(1)} prio {priority} {buckets}"
        lines += [
            f"tc class add dev {device} parent 1:1 classid {name} {shape}",
            f"tc qdisc add dev {device} parent {name} {queue}",
        ]
    for value, mask in SHORT:
        match = f"u32 match u16 {value:#06x} {mask:#06x} at 2"
        lines.append(f"tc filter add dev {device} parent 1: protocol ip prio 1 {match} flowid 1:2")
    return lines
