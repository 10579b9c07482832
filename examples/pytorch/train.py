"""Train a small network with DistributedDataParallel over gloo, and record it.

torchrun --nproc-per-node 2 examples/pytorch/train.py FOLDER [BATCH] [EPOCHS] [BUCKET_MB] [ACCUMULATE]
"""

import sys
from contextlib import nullcontext

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from trainsim import Recorder


class Digits(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def main(
    folder: str, batch: int = 64, epochs: int = 2, bucket_mb: int = 4, accumulate: int = 1, steps: int = 20
) -> None:
    init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(steps * batch, 784), torch.randint(10, (steps * batch,)))
    loader, loss_of = DataLoader(data, batch_size=batch), nn.CrossEntropyLoss()
    model = DistributedDataParallel(Digits(), bucket_cap_mb=bucket_mb)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    recorder = Recorder(folder, batch)
    for _ in range(epochs):
        for turn, (x, y) in enumerate(recorder.steps(loader), 1):
            with nullcontext() if turn % accumulate == 0 else model.no_sync():
                loss_of(model(x), y).backward()
            if turn % accumulate == 0:
                optimiser.step()
                optimiser.zero_grad()
    recorder.close()
    destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
