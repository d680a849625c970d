"""What is sent in place of a tensor: the interface that the frameworks' compressors share."""


class Compressor:
    """compress(tensor) gives what is sent and a context; decompress(sent, context) the tensor,
    reduced. Derive from it for your own."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    """The tensor itself."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor
