"""What scripts and tests import from horovod.runner.util."""
