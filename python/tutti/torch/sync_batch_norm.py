"""Batch normalization over the batches of all ranks, on any device."""
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allgather import allgather_async
from tutti.torch.allreduce import allreduce_async
from tutti.torch.handles import synchronize


def _over_batch(input):
    """All dimensions but the channels'."""
    return [0, *range(2, input.dim())]


def _per_channel(values, input):
    """[C] so that it goes with input, [N, C, ...]."""
    return values.view(1, -1, *[1] * (input.dim() - 2))


def _gathered_statistics(input, process_set):
    """Mean and biased variance of every channel over all ranks' inputs, and how many values of a
    channel there are. Combined from the ranks' own (Chan, Golub, LeVeque 1983), not from sums of
    squares, which cancel."""
    input = input.float() if input.dtype.itemsize < 4 else input
    count = input.numel() // input.size(1)
    if count > 0:
        variance, mean = torch.var_mean(input, _over_batch(input), correction=0)
    else:
        variance = mean = input.new_zeros(input.size(1))
    mine = torch.cat([mean, variance, mean.new_tensor([count])]).unsqueeze(0)
    everyone = synchronize(allgather_async(mine, None, process_set))
    means, variances, counts = everyone.split([input.size(1), input.size(1), 1], 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    variance = ((variances + (means - mean) ** 2) * counts).sum(0) / total
    return mean, variance, total


class _SyncBatchNorm(torch.autograd.Function):
    """input: [N, C, ...], N of which may differ between ranks; statistics are [C]."""

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, process_set):
        mean, variance, total = _gathered_statistics(input, process_set)
        if running_mean is not None:
            unbiased = variance * (total / (total - 1).clamp(min=1))
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        scale = torch.rsqrt(variance + eps)
        normal = (input - _per_channel(mean, input)) * _per_channel(scale, input)
        ctx.save_for_backward(normal, weight, scale, total)
        ctx.process_set, ctx.dtype = process_set, input.dtype
        output = normal
        if weight is not None:
            output = normal * _per_channel(weight, input) + _per_channel(bias, input)
        return output.to(input.dtype)

    @staticmethod
    def backward(ctx, gradient):
        normal, weight, scale, total = ctx.saved_tensors
        gradient = gradient.to(normal.dtype)
        over = _over_batch(gradient)
        of_bias, of_weight = gradient.sum(over), (gradient * normal).sum(over)
        of_input = None
        if ctx.needs_input_grad[0]:
            sums = synchronize(allreduce_async(torch.stack([of_bias, of_weight]), op=comm.Sum,
                                               process_set=ctx.process_set)) / total
            scale = scale if weight is None else scale * weight
            of_input = _per_channel(scale, gradient) * (
                gradient - _per_channel(sums[0], gradient)
                - normal * _per_channel(sums[1], gradient))
            of_input = of_input.to(ctx.dtype)
        if weight is None:
            return of_input, *[None] * 7
        return of_input, of_weight.to(weight.dtype), of_bias.to(weight.dtype), *[None] * 5


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d, 2d and 3d whose statistics in training are of all ranks' inputs,
    [N, C, ...]. Gradients of weight and bias are the rank's own, as of every other layer."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 process_set=global_process_set):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
        of_batch = self.training or not self.track_running_stats
        if not of_batch or self.process_set.size() == 1:
            return torch.nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, of_batch,
                self._factor(), self.eps)
        tracked = (self.running_mean, self.running_var) if self.training else (None, None)
        return _SyncBatchNorm.apply(input, self.weight, self.bias, *tracked, self.eps,
                                    self._factor(), self.process_set)

    def _factor(self):
        """Returns the weight of the newest batch in the running statistics; without momentum they
        are a plain mean."""
        if self.momentum is not None:
            return self.momentum
        return 1.0 / max(int(self.num_batches_tracked), 1) if self.track_running_stats else 0.0
