"""What every rank of test_torch_failures.py does."""
import os
import signal

import torch

import tutti.torch as hvd
from ranks import raises


def one_never_comes():
    """The stall inspector ends it, on all ranks, and says who was waited for: also for rank 2,
    where that is held up."""
    hvd.init()
    name = "other" if hvd.rank() == 1 else "late"
    said = r'"allreduce\.(late" has waited .* for ranks? [02, ]*1|other" has waited .* for ranks 0, 2)'
    with raises(hvd.HorovodInternalError, said):
        hvd.allreduce(torch.ones(2), name=name)
    hvd.shutdown()


def one_is_killed():
    os.environ["HOROVOD_STALL_CHECK_DISABLE"] = "1"  # a rank that is held up is not stalled here
    hvd.init()
    hvd.barrier()
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with raises(hvd.HorovodInternalError, "rank 1") as error:
        hvd.allreduce(torch.ones(2), name="with all")
    assert error[0].lost_rank == 1
    with raises(hvd.HorovodInternalError, "rank 1"):  # and so does the next
        hvd.allreduce(torch.ones(2), name="again")
    hvd.shutdown()
