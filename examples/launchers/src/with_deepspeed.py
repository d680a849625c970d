"""DeepSpeed in an MPI job: a process for each rank, ZeRO's first stage (each rank keeps its part of the optimizer's
state), Gloo between CPUs. On GPUs the same script runs with "nccl"."""
import deepspeed
import torch
from mpi4py import MPI

import linear

CONFIGURATION = {
    "train_micro_batch_size_per_gpu": 16,
    "optimizer": {"type": "Adam", "params": {"lr": 0.1, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}

# On CPUs DeepSpeed would first compile an operation of its own for ranks on one node, which takes minutes. Gloo does it.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def main():
    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")
    rank, world_size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
    assert (rank, world_size) == (MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size())
    model = linear.model()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIGURATION)
    data = torch.utils.data.TensorDataset(*linear.points())
    part = torch.utils.data.DistributedSampler(data, world_size, rank)
    loader = torch.utils.data.DataLoader(data, engine.train_micro_batch_size_per_gpu(), sampler=part)
    for _ in range(60):
        for x, y in loader:
            engine.backward(torch.nn.functional.mse_loss(engine(x.to(engine.device)), y.to(engine.device)))
            engine.step()
    linear.report(rank, world_size, engine.module)
    engine.save_checkpoint("outputs/checkpoint")


if __name__ == "__main__":
    main()
