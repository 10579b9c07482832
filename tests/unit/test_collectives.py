"""Every allreduce leaves the sum everywhere; bytes, rounds and seconds are those of the closed forms."""

import math
from collections import deque

import numpy as np
import pytest

from sim import collectives
from sim.collectives.tuned import tuned

SIZES = (0, 1, 2, 7, 16, 1000)
RANKS = range(1, 18)


def execute(algorithm: str, hosts: list[int], vectors: np.ndarray) -> np.ndarray:
    """Run all ranks over `vectors` (ranks, items), a message at a time; bytes that each handed over, shape (ranks,)."""
    whole = slice(0, vectors.shape[1])
    texts = {rank: collectives.allreduce(algorithm, rank, hosts, whole) for rank in range(len(hosts))}
    mail: dict[tuple[int, int], deque] = {}
    sent_bytes, waiting = np.zeros(len(hosts), int), {}
    while texts:
        moved = False
        for rank in list(texts):
            exchange = waiting.get(rank) or next(texts[rank], None)
            if exchange is None:
                del texts[rank]
                moved = True
                continue
            if rank not in waiting and exchange.to is not None:
                mail.setdefault((rank, exchange.to), deque()).append(vectors[rank, exchange.sent].copy())
                sent_bytes[rank] += exchange.sent_bytes
                moved = True
            waiting[rank] = exchange
            come = mail.get((exchange.source, rank))
            if exchange.source is None or come:
                if come:
                    taken = come.popleft()
                    assert taken.size == exchange.taken.stop - exchange.taken.start
                    vectors[rank, exchange.taken] = taken + vectors[rank, exchange.taken] * exchange.adds
                del waiting[rank]
                moved = True
        assert moved, "the ranks wait for one another"
    assert not any(mail.values())
    return sent_bytes


def placements(ranks: int) -> list[list[int]]:
    """One rank a host, all on one, three a host in order, and scattered."""
    many = range(ranks)
    return [list(many), [0] * ranks, [r // 3 for r in many], [(r * 5 + r // 2) % 4 for r in many]]


@pytest.mark.parametrize("algorithm", collectives.NAMES)
@pytest.mark.parametrize("ranks", RANKS)
def test_every_rank_ends_with_the_sum(algorithm, ranks):
    rng = np.random.default_rng(ranks)
    for size in SIZES:
        for hosts in placements(ranks):
            vectors = rng.integers(-99, 99, (ranks, size))
            expected = vectors.sum(axis=0)
            execute(algorithm, hosts, vectors)
            assert (vectors == expected).all()


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_ranks_end_with_the_same_bits(ranks):
    """Sums of floats depend on their order; parameters must not part."""
    for algorithm in collectives.NAMES:
        vectors = np.random.default_rng(1).normal(size=(ranks, 100)).astype(np.float32)
        execute(algorithm, list(range(ranks)), vectors)
        assert (vectors == vectors[0]).all()


@pytest.mark.parametrize("ranks", range(2, 17))
def test_bytes_are_those_of_the_closed_forms(ranks):
    """720,720 items can be cut in 2 to 16 equal parts."""
    size, m = 720_720, 4 * 720_720
    handed = {
        algorithm: execute(algorithm, list(range(ranks)), np.zeros((ranks, size), np.int8))
        for algorithm in collectives.FLAT
    }
    assert (handed["ring"] == 2 * m * (ranks - 1) // ranks).all()
    assert handed["tree"].sum() == 2 * m * (ranks - 1)
    assert (handed["alltoall-allgather"] == 2 * m * (ranks - 1) // ranks).all()
    through = [m if rank in (0, ranks - 1) else 2 * m for rank in range(ranks)] if ranks > 2 else [m, m]
    assert handed["reduce-broadcast"].tolist() == through  # the server tells, and who is last on the chain is told
    if ranks & (ranks - 1) == 0:
        assert (handed["halving-doubling"] == 2 * m * (ranks - 1) // ranks).all()
        assert (handed["recursive-doubling"] == m * math.log2(ranks)).all()


@pytest.mark.parametrize("algorithm", ["nccl", "reduce-broadcast"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_vectors_of_many_chunks_are_summed(algorithm, ranks):
    vectors = np.random.default_rng(ranks).integers(-9, 9, (ranks, 3 * 2**20 + 5), np.int16)
    expected = vectors.sum(axis=0, dtype=np.int16)
    execute(algorithm, list(range(ranks)), vectors)
    assert (vectors == expected).all()


@pytest.mark.parametrize("ranks", RANKS)
def test_one_rank_a_host_is_the_ring_and_one_host_the_tree(ranks):
    whole = slice(0, 100)
    for hosts, flat in ((list(range(ranks)), "ring"), ([0] * ranks, "tree")):
        for rank in range(ranks):
            assert list(collectives.allreduce("hierarchical", rank, hosts, whole)) == list(
                collectives.allreduce(flat, rank, hosts, whole)
            )


def test_between_hosts_a_hierarchy_sends_no_more_than_a_ring_of_hosts():
    hosts, whole = [r // 4 for r in range(16)], slice(0, 1600)
    for rank in range(16):
        across = sum(
            e.sent_bytes
            for e in collectives.allreduce("hierarchical", rank, hosts, whole)
            if e.to is not None and hosts[e.to] != hosts[rank]
        )
        assert across == (2 * 6400 * 3 // 4 if rank % 4 == 0 else 0)


@pytest.mark.parametrize(
    ("ranks", "size_bytes", "expected"),
    [
        (2, 4, "ring"),
        (3, 4095, "recursive-doubling"),
        (3, 4096, "ring"),
        (2, 262_144, "halving-doubling"),
        (4, 15, "ring"),
        (4, 8191, "recursive-doubling"),
        (7, 8192, "halving-doubling"),
        (16, 63, "ring"),
        (100, 262_143, "recursive-doubling"),
        (200, 1000, "tree"),
        (100_000, 32_767, "recursive-doubling"),
        (100_000, 10**9, "halving-doubling"),
    ],
)
def test_auto_is_what_open_mpi_takes(ranks, size_bytes, expected):
    assert tuned(ranks, size_bytes) == expected
