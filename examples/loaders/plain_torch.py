"""packtok's data in torch's own DataLoader: complete batches; a resumed run skips those it has seen.

    python plain_torch.py train.pbin

Workers draw batches ahead of training, so the sampler's state is not the position of the training. With this
loader, a run counts its steps itself. `packtok.DataLoader` does that for you.
"""

import sys
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader

import packtok


def loader(path: str, *, batch_size: int, steps_done: int = 0, num_workers: int = 0) -> DataLoader[object]:
    """Returns shuffled batches of the first epoch, after those of the first ``steps_done`` steps."""
    dataset = packtok.TokenDataset(path, context_length=64)
    sampler = packtok.ResumableDistributedSampler(
        dataset,
        shuffle=True,
        seed=1,
        batch_size=batch_size,
        drop_last=True,
        skip_num_global_samples=steps_done * batch_size,
    )
    return DataLoader(dataset, batch_sampler=packtok.ResumableBatchSampler(sampler), num_workers=num_workers)


def train(path: str, *, batch_size: int, steps_done: int = 0, num_workers: int = 0) -> Iterator[torch.Tensor]:
    """Yields the inputs of each step; a real run would train on them."""
    for batch in loader(path, batch_size=batch_size, steps_done=steps_done, num_workers=num_workers):
        yield batch["input_ids"]


if __name__ == "__main__":
    for step, input_ids in enumerate(train(sys.argv[1], batch_size=8)):
        print(step, tuple(input_ids.shape), input_ids[0, :8].tolist())
