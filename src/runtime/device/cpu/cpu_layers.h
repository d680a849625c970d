// CpuLayers runs the layers of this folder on libtorch's tensors and threads.
#pragma once

#include "runtime/device/kernels/layers.h"

namespace tutti::device {

Layers& CpuLayers();

}  // namespace tutti::device
