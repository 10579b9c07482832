"""Every allreduce leaves the sum everywhere; bytes, rounds and seconds are those of the closed forms."""

import math
from collections import defaultdict, deque

import numpy as np
import pytest

from sim.language.collectives import NAMES
from sim.language.moves import moves, named
from sim.model.sizes import ITEM_BYTES

SIZES = (0, 1, 7, 16, 100)
RANKS = (*range(1, 10), 12, 16, 17)


def execute(algorithm: str, hosts: list[int], vectors: np.ndarray) -> np.ndarray:
    """Run all ranks over `vectors` (ranks, items), a message at a time; bytes that each handed over, shape (ranks,)."""
    texts = {rank: moves(algorithm, rank, hosts, vectors.shape[1]) for rank in range(len(hosts))}
    mail: defaultdict[tuple[int, int], deque] = defaultdict(deque)
    sent_bytes, waiting = np.zeros(len(hosts), int), {}
    while texts:
        moved = False
        for rank in list(texts):
            move = waiting.pop(rank, None) or next(texts[rank], None)
            if move is None:
                del texts[rank]
            elif move.to is not None:
                mail[rank, move.to].append(vectors[rank, move.piece.start : move.piece.stop].copy())
                sent_bytes[rank] += move.bytes
            elif move.frm is not None and not mail[move.frm, rank]:
                waiting[rank] = move
            elif move.frm is not None:
                taken, own = mail[move.frm, rank].popleft(), vectors[rank, move.piece.start : move.piece.stop]
                assert taken.size == own.size
                own[:] = taken + own * move.adds
            moved = moved or rank not in waiting
        assert moved, "the ranks wait for one another"
    assert not any(mail.values())
    return sent_bytes


def placements(ranks: int) -> list[list[int]]:
    """One rank a host, all on one, three a host in order, and scattered."""
    many = range(ranks)
    return [list(many), [0] * ranks, [r // 3 for r in many], [(r * 5 + r // 2) % 4 for r in many]]


@pytest.mark.parametrize("algorithm", NAMES)
@pytest.mark.parametrize("ranks", RANKS)
def test_every_rank_ends_with_the_sum(algorithm, ranks):
    rng = np.random.default_rng(ranks)
    for size in SIZES:
        for hosts in placements(ranks)[: None if algorithm == "hierarchical" else 1]:  # no other asks for hosts
            vectors = rng.integers(-99, 99, (ranks, size))
            expected = vectors.sum(axis=0)
            execute(algorithm, hosts, vectors)
            assert (vectors == expected).all()


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_ranks_end_with_the_same_bits(ranks):
    """Sums of floats depend on their order; parameters must not part."""
    for algorithm in NAMES:
        vectors = np.random.default_rng(1).normal(size=(ranks, 100)).astype(np.float32)
        execute(algorithm, list(range(ranks)), vectors)
        assert (vectors == vectors[0]).all()


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 15, 16])
def test_bytes_are_those_of_the_closed_forms(ranks):
    """720,720 items can be cut in 2 to 16 equal parts."""
    size, m = 720_720, 4 * 720_720
    handed = {
        algorithm: execute(algorithm, list(range(ranks)), np.zeros((ranks, size), np.int8)) for algorithm in NAMES[1:]
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
    for hosts, flat in ((list(range(ranks)), "ring"), ([0] * ranks, "tree")):
        for rank in range(ranks):
            assert list(moves("hierarchical", rank, hosts, 100)) == list(moves(flat, rank, hosts, 100))


def test_between_hosts_a_hierarchy_sends_no_more_than_a_ring_of_hosts():
    hosts = [r // 4 for r in range(16)]
    for rank in range(16):
        of_rank = moves("hierarchical", rank, hosts, 1600)
        across = sum(move.bytes for move in of_rank if move.to is not None and hosts[move.to] != hosts[rank])
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
    assert named("auto", range(ranks), size_bytes / ITEM_BYTES) == expected
