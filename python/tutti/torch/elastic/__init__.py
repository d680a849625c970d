"""Elastic training of PyTorch models (tutti.comm.elastic tells how it goes)."""
from tutti.comm.elastic import run
from tutti.torch.elastic.sampler import ElasticSampler
from tutti.torch.elastic.state import TorchState

__all__ = ["TorchState", "ElasticSampler", "run"]
