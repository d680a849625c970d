"""What Horovod has under runner.common."""
