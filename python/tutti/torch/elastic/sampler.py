"""A sampler that deals what is left of an epoch to the ranks there are now."""
import random

import torch

from tutti import comm


class ElasticSampler(torch.utils.data.Sampler):
    """Deals the indices of a dataset of constant size to the ranks, the same number to each (the
    last repeat some).

    Say record_batch after every batch and set_epoch at the END of an epoch, and keep it in a
    TorchState: then, after a change of ranks, what had been seen by the last commit is not dealt
    again in that epoch. `seed` is the same on all ranks.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0  # by all ranks, of this epoch
        self.reset()

    def set_epoch(self, epoch):
        """Begins another epoch, of which nothing has been seen."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Every rank has seen `batch_size` samples more."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self):
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict):
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self):
        """Deals what is left to the ranks there are now."""
        self.rank, self.num_replicas = comm.rank(), comm.size()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        left = self.remaining_indices
        self.indices = [
            left[place % len(left)]
            for place in range(self.rank, self.total_size, self.num_replicas)
        ]
        return iter(self.indices)

    def __len__(self):
        return self.num_samples
