"""PyTorch Lightning: started once on each node, it starts the node's other processes itself and finds the nodes by
MASTER_ADDR, MASTER_PORT and NODE_RANK."""
import os

import lightning
import torch
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy

import linear


class Fit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = linear.model()

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.mse_loss(self.model(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    data = torch.utils.data.TensorDataset(*linear.points())
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, num_nodes=int(os.environ["AZUREML_NODE_COUNT"]), max_epochs=20,
        strategy=DDPStrategy(process_group_backend="gloo"), plugins=[LightningEnvironment()],
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False)
    fit = Fit()
    trainer.fit(fit, loader)
    linear.report(trainer.global_rank, trainer.world_size, fit.model)


if __name__ == "__main__":
    main()
