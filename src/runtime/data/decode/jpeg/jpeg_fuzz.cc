// Any bytes, decoded whole, in part and scaled: an error or pixels. The file's first two bytes
// choose the region, so that the fuzzer finds its edges too.
#include <algorithm>
#include <cstdint>

#include "runtime/data/decode/jpeg/jpeg.h"

namespace {

// Reads every pixel, so that the sanitizers see a view that is larger than its memory.
uint64_t Sum(const tutti::data::ImageView& view) {
  uint64_t sum = 0;
  for (int y = 0; y < view.height; ++y) {
    for (int i = 0; i < view.width * tutti::data::kBytesPerPixel; ++i) sum += view.row(y)[i];
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static tutti::data::JpegDecoder decoder(1 << 16);
  const absl::string_view encoded(reinterpret_cast<const char*>(data) + 2, size - 2);
  volatile uint64_t sink = 0;
  for (const bool whole : {true, false}) {
    const auto image = decoder.Open(encoded);
    if (!image.ok()) return 0;
    tutti::data::Region region{0, 0, image->width, image->height};
    if (!whole) {
      region.left = data[0] % image->width;
      region.top = data[1] % image->height;
      region.width = std::min(image->width - region.left, 1 + data[0] / 4);
      region.height = std::min(image->height - region.top, 1 + data[1] / 4);
    }
    const auto decoded = decoder.Decode(region, whole ? 1 : 1 << data[0] % 4);
    if (decoded.ok()) sink = Sum(decoded->view);
  }
  (void)sink;
  return 0;
}
