"""A worker of test_elastic: adds numbers up over the ranks, in integers, so that what comes out is
exactly what one process alone would get, however often the ranks change.

elastic_worker.py STEPS COMMIT_EVERY [SECONDS_A_STEP]: prints a line "step S of rank R of N, worker
W pid P" for every step, and at last "done TOTAL of rank R of N after S steps". With ELASTIC_GO in its
environment it makes STEPS steps more once that file is there, so that it does not end before.
"""
import ctypes
import os
import pickle
import sys
import time

from tutti import comm
from tutti.comm import elastic

SAMPLES = 12  # a step


def _run(kind, name, array, type_, **request):
    address = ctypes.addressof(array)
    tensor = comm.Tensor(address, address, (len(array),), type_)
    comm.submit(kind, name, [tensor], keep=array, **request).wait()
    return array


def broadcast_object(obj):
    data = pickle.dumps(obj) if comm.rank() == 0 else b""
    size = _run(comm.BROADCAST, "size", (ctypes.c_int64 * 1)(len(data)), comm.INT64)[0]
    data = (ctypes.c_uint8 * size)(*data) if comm.rank() == 0 else (ctypes.c_uint8 * size)()
    return pickle.loads(bytes(_run(comm.BROADCAST, "data", data, comm.UINT8)))


def sample(step, index):
    return (step * 7919 + index * 104729) % 10007


def total_of(steps):
    """What every run has to come to."""
    return sum(sample(step, index) for step in range(steps) for index in range(SAMPLES))


def may_end():
    return "ELASTIC_GO" not in os.environ or os.path.exists(os.environ["ELASTIC_GO"])


@elastic.run
def train(state, commit_every, seconds):
    while state.left > 0:
        mine = sum(sample(state.step, index) for index in range(comm.rank(), SAMPLES, comm.size()))
        added = (ctypes.c_int64 * 2)(mine, may_end())  # ranks look at different times, and agree
        total, may = _run(comm.ALL_REDUCE, "total", added, comm.INT64, op=comm.Sum)
        state.total += total
        state.step += 1
        state.left -= may > 0
        print(f"step {state.step} of rank {comm.rank()} of {comm.size()}, worker "
              f"{os.environ['TUTTI_WORKER']} pid {os.getpid()}", flush=True)
        if state.step % commit_every == 0:
            state.commit()
        time.sleep(seconds)


def main():
    steps, commit_every = int(sys.argv[1]), int(sys.argv[2])
    comm.init()
    state = elastic.ObjectState(broadcast_object, comm.rank, step=0, left=steps, total=0)
    state.register_reset_callbacks([lambda: print(f"reset to {comm.size()}", flush=True)])
    train(state, commit_every, float(sys.argv[3]) if len(sys.argv) > 3 else 0.02)
    print(f"done {state.total} of rank {comm.rank()} of {comm.size()} after {state.step} steps",
          flush=True)


if __name__ == "__main__":
    main()
