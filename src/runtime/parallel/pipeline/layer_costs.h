// Measures what each layer of a model costs with one micro-batch, on this device: what partition.h
// cuts a model by. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/models/layer.h"
#include "runtime/parallel/pipeline/partition.h"

namespace tutti::parallel {

// Passes `inputs`, one micro-batch [n, ...], forward and backward through one layer after the
// other, as often as `repetitions` says after a pass that is not counted, or once where that takes
// half a second; gradients of the outputs are random. Seconds are the least. Bytes are those of
// tensors that the forward pass has made and that are there at its end: a layer's input is of the
// layer before it; and, beyond those, the most that there were in either pass. `bf16`: under
// autocast.
//
// The model is in train mode and on the device of `inputs`, and no strategy has it yet. Parameters,
// gradients, buffers and libtorch's generator of random numbers are as before afterwards, also
// after an error.
//
// InvalidArgument: no layer or no repetition; Internal names the layer that libtorch cannot pass.
absl::StatusOr<std::vector<LayerCost>> MeasureLayers(const std::vector<models::Layer>& layers,
                                                     const torch::Tensor& inputs, bool bf16,
                                                     int repetitions);

}  // namespace tutti::parallel
