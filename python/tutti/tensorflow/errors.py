"""tutti's errors as TensorFlow's, alike in eager mode and from the op of ops/collective.cc."""
import tensorflow as tf

from tutti.comm import HorovodInternalError

_REQUESTS_DIFFER = 3  # TUTTI_COMM_INVALID_ARGUMENT, of an operation that was submitted


class CollectiveError(tf.errors.UnknownError, HorovodInternalError):
    """A rank is lost or has shut down, or time ran out. What TensorFlow's scripts catch of a failed
    op, and what elastic training catches."""

    def __init__(self, message, lost_rank=-1, status=None):
        tf.errors.UnknownError.__init__(self, None, None, message)
        self.lost_rank = lost_rank
        self.status = status


def translated(error):
    """The exception to raise in place of one of tutti.comm's. FailedPreconditionError where the
    ranks' requests differ, InvalidArgumentError where a call makes no sense by itself."""
    if isinstance(error, HorovodInternalError):
        if error.status == _REQUESTS_DIFFER:
            return tf.errors.FailedPreconditionError(None, None, str(error))
        return CollectiveError(str(error), error.lost_rank, error.status)
    if isinstance(error, ValueError):
        return tf.errors.InvalidArgumentError(None, None, str(error))
    return error


def is_of_lost_ranks(error):
    """Whether an exception that came out of a graph (tf.function, fit, a session) is one of tutti's
    collectives that failed because of the other ranks: elastic training goes on after it."""
    if isinstance(error, HorovodInternalError):
        return True
    text = str(error)
    is_ours = 'collective "' in text or "HorovodInternalError" in text
    return isinstance(error, tf.errors.UnknownError) and is_ours
