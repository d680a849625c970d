// bf16 where libtorch's autocast sees fit (convolutions, linear layers), on this thread.
#pragma once

#include <ATen/autocast_mode.h>

namespace tutti::parallel {

// While it lives; does nothing when `enabled` is false.
class Autocast {
 public:
  explicit Autocast(bool enabled) : enabled_(enabled) {
    if (!enabled_) return;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  }
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool enabled_;
};

}  // namespace tutti::parallel
