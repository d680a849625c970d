#include "runtime/device/cpu/max_pool/max_pool_cpu.h"

#include "runtime/device/cpu/vector/lanes.h"

namespace tutti::device::cpu {
namespace {

// One set of machine code: see max_pool_kernels.inc.
template <Element T>
struct Rows {
  void (*pool)(const Pooling& shape, const T* x, int64_t out, T* y, uint8_t* taken);
  void (*unpool)(const Pooling& shape, const T* dy, const uint8_t* taken, int64_t row, T* dx);
};

#define TUTTI_KERNELS "runtime/device/cpu/max_pool/max_pool_kernels.inc"
#include "runtime/device/cpu/vector/for_each_instruction_set.inc"
#undef TUTTI_KERNELS

template <Element T>
const Rows<T>& BestRows() {
  static const Rows<T>& best = Choose(widest::kRows<T>, wide::kRows<T>, plain::kRows<T>);
  return best;
}

}  // namespace

template <Element T>
void MaxPoolForward(const Pooling& shape, const T* x, T* y, uint8_t* taken, int threads) {
  const int64_t rows = shape.out_height(), row_size = shape.out_width() * shape.channels;
  const int64_t image_size = shape.height * shape.width * shape.channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < shape.images * rows; ++i) {
    BestRows<T>().pool(shape, x + i / rows * image_size, i % rows, y + i * row_size,
                       taken + i * row_size);
  }
}

template <Element T>
void MaxPoolBackward(const Pooling& shape, const T* dy, const uint8_t* taken, T* dx, int threads) {
  const int64_t image_size = shape.height * shape.width * shape.channels;
  const int64_t out_size = shape.out_height() * shape.out_width() * shape.channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < shape.images * shape.height; ++i) {
    const int64_t image = i / shape.height;
    BestRows<T>().unpool(shape, dy + image * out_size, taken + image * out_size, i % shape.height,
                         dx + image * image_size);
  }
}

#define TUTTI_MAX_POOL_OF(T)                                                 \
  template void MaxPoolForward(const Pooling&, const T*, T*, uint8_t*, int); \
  template void MaxPoolBackward(const Pooling&, const T*, const uint8_t*, T*, int);
TUTTI_MAX_POOL_OF(float)
TUTTI_MAX_POOL_OF(uint16_t)
#undef TUTTI_MAX_POOL_OF

}  // namespace tutti::device::cpu
