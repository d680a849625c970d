#include "runtime/device/cpu/max_pool.h"

#include "runtime/device/cpu/lanes.h"

namespace tutti::device::cpu {
namespace {

// One set of machine code: see max_pool_kernels.inc.
struct Rows {
  void (*pool)(const Pooling& shape, const uint16_t* x, int64_t out, uint16_t* y, uint8_t* taken);
  void (*unpool)(const Pooling& shape, const uint16_t* dy, const uint8_t* taken, int64_t row,
                 uint16_t* dx);
};

#define TUTTI_KERNELS "runtime/device/cpu/max_pool_kernels.inc"
#include "runtime/device/cpu/for_each_instruction_set.inc"
#undef TUTTI_KERNELS

const Rows& BestRows() {
  static const Rows& best = Choose(widest::kRows, wide::kRows, plain::kRows);
  return best;
}

}  // namespace

void MaxPoolForward(const Pooling& shape, const uint16_t* x, uint16_t* y, uint8_t* taken,
                    int threads) {
  const int64_t rows = shape.out_height(), row_size = shape.out_width() * shape.channels;
  const int64_t image_size = shape.height * shape.width * shape.channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < shape.images * rows; ++i) {
    BestRows().pool(shape, x + i / rows * image_size, i % rows, y + i * row_size,
                    taken + i * row_size);
  }
}

void MaxPoolBackward(const Pooling& shape, const uint16_t* dy, const uint8_t* taken, uint16_t* dx,
                     int threads) {
  const int64_t image_size = shape.height * shape.width * shape.channels;
  const int64_t out_size = shape.out_height() * shape.out_width() * shape.channels;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < shape.images * shape.height; ++i) {
    const int64_t image = i / shape.height;
    BestRows().unpool(shape, dy + image * out_size, taken + image * out_size, i % shape.height,
                      dx + image * image_size);
  }
}

}  // namespace tutti::device::cpu
