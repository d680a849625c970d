// Opens the processor that a run computes on: the CPU, or a GPU where there is one and libtorch can
// use it. libtorch's CUDA part is loaded when it is asked for, so that programs start on machines
// without a GPU, and without the libraries that it needs, as if it did not exist.
//
// Thread-compatible.
#pragma once

#include <torch/types.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/kernels/cuda.h"
#include "runtime/device/kernels/layers.h"

namespace tutti::device {

// Opens "cpu"; "cuda": this rank's GPU (LOCAL_RANK, modulo the GPUs that the process sees); "auto":
// that if there is one, else the CPU, with a warning where libtorch lacks what a driver is there
// for. The GPU is made the current one. Before anything else is computed: libtorch looks once for
// what devices there are.
//
// FailedPrecondition says why there is no GPU: none on the machine, or what libtorch lacks; or what
// libtorch needs of a processor that this one lacks.
absl::StatusOr<torch::Device> Open(absl::string_view name);

// Returns tutti's own kernels and graphs; null before Open gave a GPU, and where they were not
// built.
Cuda* Kernels();
// Returns the fused layers of a device; null where there are none: on a GPU without
// libtutti_cuda.so.
Layers* LayersOn(torch::Device device);

}  // namespace tutti::device
