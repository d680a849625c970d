"""Hugging Face Accelerate prepares model, optimizer and loader; `accelerate launch` starts the processes of a node."""
import torch
from accelerate import Accelerator

import linear


def main():
    accelerator = Accelerator(cpu=True)
    model = linear.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*linear.points()), batch_size=16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(20):
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
            optimizer.step()
    linear.report(accelerator.process_index, accelerator.num_processes, accelerator.unwrap_model(model))
    accelerator.end_training()


if __name__ == "__main__":
    main()
