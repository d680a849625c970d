// KeptWeights keeps the weights of a network that does not change as convolutions read them.
// Without it they are packed for each batch, which in batches of few images takes as long as a
// tenth of the products. It holds about as many bytes as the weights, and four times those of 3x3
// kernels that go by patches in fp32.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/device/cpu/bf16/convolution_scratch.h"

namespace tutti::device::cpu {

// Thread-safe.
class KeptWeights {
 public:
  // Keeps the weights at these addresses alone, which stay and do not change as long as it lives: a
  // network may also compute some, whose memory is another's the next time.
  explicit KeptWeights(std::set<const void*> weights) : weights_(std::move(weights)) {}

  // While it lives, this thread's convolutions take their weights from `kept`.
  class Use {
   public:
    explicit Use(KeptWeights& kept);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    KeptWeights* const before_;
  };

  // Returns `count` elements made of `weights`, in one of several forms: those that are kept, which
  // `make` writes once; where none are, those that `make` writes to `scratch`.
  template <typename Element, typename Make>
  static const Element* Of(const Element* weights, int form, int64_t count,
                           Scratch<Element>& scratch, const Make& make) {
    if (KeptWeights* const kept = Current(); kept != nullptr && kept->weights_.count(weights) > 0) {
      return static_cast<const Element*>(
          kept->Find(weights, form, count * static_cast<int64_t>(sizeof(Element)),
                     [&](void* to) { make(static_cast<Element*>(to)); }));
    }
    Element* const to = scratch.Of(count);
    make(to);
    return to;
  }

 private:
  static KeptWeights* Current();
  const void* Find(const void* weights, int form, int64_t bytes,
                   const std::function<void(void*)>& make);

  const std::set<const void*> weights_;
  std::mutex mutex_;
  std::map<std::tuple<const void*, int, int64_t>, Scratch<char>> packed_;
};

}  // namespace tutti::device::cpu
