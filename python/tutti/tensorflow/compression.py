"""Fewer bits on the way."""
import tensorflow as tf

from tutti.compressor import Compressor, NoneCompressor


class FP16Compressor(Compressor):
    """Floating point as float16; other types as they are."""

    @staticmethod
    def compress(tensor):
        return (tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class Compression:
    """The compressors there are."""
    none = NoneCompressor
    fp16 = FP16Compressor
