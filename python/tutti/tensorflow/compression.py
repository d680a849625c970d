"""Fewer bits on the way."""
import tensorflow as tf


class Compressor:
    """What is sent for a tensor, and the tensor again from that. Derive from it for your own."""

    @staticmethod
    def compress(tensor):
        """(what is sent, whatever decompress needs)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor, from what compress returned, reduced."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """The tensor itself."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


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
