// Any bytes, opened as an image of whatever kind they say they are, decoded whole and in part: an
// error or pixels. The file's first two bytes choose the part.
#include <algorithm>
#include <cstdint>

#include "runtime/data/decode/image_decoder.h"

namespace {

using tutti::data::Planes;

uint64_t Sum(const tutti::data::ImageView& view) {
  uint64_t sum = 0;
  for (int y = 0; y < view.height; ++y) {
    for (int i = 0; i < view.width * tutti::data::kBytesPerPixel; ++i) sum += view.row(y)[i];
  }
  return sum;
}

// The samples of the rows [top, bottom) of the image, and the padding behind them.
uint64_t Sum(const Planes& planes, int top, int bottom) {
  uint64_t sum = 0;
  for (int c = 0; c < planes.count(); ++c) {
    const auto& plane = planes.plane[c];
    const int last = std::min(plane.whole.height - 1, (bottom - 1) / plane.down);
    for (int y = top / plane.down; y <= last; ++y) {
      const uint8_t* row = plane.at(plane.left, y);
      for (size_t i = 0; i < plane.stride; ++i) sum += row[i];
    }
    for (size_t i = 0; i < 15; ++i) sum += plane.at(plane.left, last)[plane.stride + i];
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static tutti::data::ImageDecoder decoder;
  const absl::string_view encoded(reinterpret_cast<const char*>(data) + 2, size - 2);
  volatile uint64_t sink = 0;
  const auto image = decoder.Open(encoded);
  if (!image.ok() || int64_t{image->width} * image->height > 1 << 16) return 0;
  const auto whole = decoder.Decode();
  if (whole.ok()) sink = Sum(*whole);
  if (!decoder.Open(encoded).ok()) return 0;
  tutti::data::Region region{data[0] % image->width, data[1] % image->height, 1, 1};
  region.height = std::min(image->height - region.top, 1 + data[1] / 4);
  const int denominator = decoder.max_denominator() == 1 ? 1 : 1 << data[0] % 4;
  const auto planes = decoder.DecodePlanes(region, denominator);
  if (planes.ok()) {
    sink = Sum(*planes, region.top / denominator,
               (region.top + region.height + denominator - 1) / denominator);
  }
  (void)sink;
  return 0;
}
