"""What the workers of frameworks do around a step: count it, report it, commit every third.

Workers are started as `WORKER STEPS RANKS` and train until they have made STEPS steps with just
RANKS ranks, so that they do not end before the ranks have changed to that.
"""
import os
import time

SAMPLES = 48


def train(hvd, state, ranks, one_step):
    """Calls one_step(the samples of this rank) until state.left is 0."""
    while state.left > 0:
        one_step(slice(hvd.rank(), SAMPLES, hvd.size()))
        state.step += 1
        state.left -= hvd.size() == ranks
        print(f"step {state.step} of rank {hvd.rank()} of {hvd.size()}, worker "
              f"{os.environ['TUTTI_WORKER']} pid {os.getpid()}", flush=True)
        if state.step % 3 == 0:
            state.commit()
        time.sleep(0.03)
