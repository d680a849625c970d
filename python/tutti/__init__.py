"""tutti in Python: Horovod's interface on tutti's collectives (tutti.torch, .tensorflow, .keras), and
Azure ML's SDK for the service (tutti.ml, and its version 1, tutti.core).

Importing this imports no framework; `tutti.comm` is what the former all stand on.
"""
__version__ = "0.1.0"
