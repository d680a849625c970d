// Autocast computes in bf16 where libtorch's autocast sees fit (convolutions, linear layers), on
// this thread.
#pragma once

#include <ATen/autocast_mode.h>

namespace tutti::device {

// Switches autocast on while it lives; does nothing when `enabled` is false.
class Autocast {
 public:
  Autocast(bool enabled, at::DeviceType device) : enabled_(enabled), device_(device) {
    if (!enabled_) return;
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  }
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool enabled_;
  const at::DeviceType device_;
};

}  // namespace tutti::device
