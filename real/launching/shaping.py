"""Shape a port of a cluster in a box: a token bucket (tc tbf) in each direction, which acknowledgements bypass.

An acknowledgement that queued after the bytes of its direction would wait until the bucket fills. A connection whose window was
halved by a loss could then not keep its own direction full. Each loss is one of the stack's packets of 64 KiB, forty-odd of an
Ethernet. Two workers, one of which pulls while the other pushes, were slower than either alone. Ports are full duplex: one direction
does not delay the other.
"""

from __future__ import annotations

BURST_BYTES = 80_000  # a bucket smaller than the largest packet of the stack, 64 KiB and headers, has the kernel cut it: half of its time
QUEUE_S = 0.001  # in a longer queue MPI's control messages wait for the bytes before them
# Bytes of an IP packet, and words of 4 bytes of TCP's header in it, that carry nothing: with or without times and 1 to 3 ranges (SACK).
# MPI's shortest message has that length, too. It would overtake bytes of its own connection, which would then seem lost.
EMPTY = ((40, 5), (52, 8), (64, 11), (72, 13), (80, 15))


def commands(ends: tuple[str, str], rate_bytes_per_s: float) -> list[str]:
    """The commands for each direction through a pair of devices that give it this rate, headers included."""
    lines = []
    for device, other in (ends, ends[::-1]):
        lines.append(
            f"tc qdisc add dev {device} root tbf rate {rate_bytes_per_s * 8:.0f}bit "
            f"burst {BURST_BYTES} latency {QUEUE_S * 1e3:g}ms"
        )
        lines.append(f"tc qdisc add dev {device} clsact")
        for size_bytes, words in EMPTY:
            empty = f"match u16 {size_bytes} 0xffff at 2 match u8 {words << 4:#04x} 0xf0 at 32"
            tcp = f"match ip protocol 6 0xff {empty}"
            lines.append(
                f"tc filter add dev {device} egress protocol ip prio 1 u32 {tcp} "
                f"action mirred ingress redirect dev {other}"
            )
    return lines
