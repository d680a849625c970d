"""A plugin of pytest: hides from Horovod's tests what PyTorch has got since they were written.

They construct every optimizer of torch.optim on vectors too; Muon takes matrices only.
"""
try:
    import torch

    torch.optim.Muon.__module__ = "newer"
except (ImportError, AttributeError):
    pass
