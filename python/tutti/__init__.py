"""tutti in Python: Horovod's interface on tutti's collectives (tutti.torch, .tensorflow, .keras).

Importing this imports no framework; `tutti.comm` is what they all stand on.
"""
__version__ = "0.1.0"
