"""What scripts take from Horovod's runner.common.util."""
