"""packtok's data in torchdata's StatefulDataLoader, which tracks the position in the data itself.

python stateful_torchdata.py train.pbin
"""

import sys

from torchdata.stateful_dataloader import StatefulDataLoader

import packtok


def loader(path: str, *, batch_size: int, num_workers: int = 0) -> StatefulDataLoader[object]:
    """Returns shuffled batches; ``state_dict`` counts those that were returned."""
    dataset = packtok.TokenDataset(path, context_length=64)
    sampler = packtok.ResumableDistributedSampler(
        dataset, shuffle=True, seed=1, batch_size=batch_size, drop_last=True
    )
    return StatefulDataLoader(
        dataset, batch_sampler=packtok.ResumableBatchSampler(sampler), num_workers=num_workers
    )


def main(path: str) -> None:
    """Stops after three steps and resumes with another loader."""
    stopped = loader(path, batch_size=8, num_workers=1)
    for step, batch in enumerate(stopped):
        print(step, batch["input_ids"][0, :8].tolist())
        if step == 2:
            break
    resumed = loader(path, batch_size=8, num_workers=1)
    resumed.load_state_dict(stopped.state_dict())
    for step, batch in enumerate(resumed, start=3):
        print(step, batch["input_ids"][0, :8].tolist())


if __name__ == "__main__":
    main(sys.argv[1])
