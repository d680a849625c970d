// Any bytes, read by SequentialReader and by libjpeg-turbo: where both take them for a sound
// image, their samples are the same. The first three bytes choose the region and the scale.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/decode/jpeg/planes_fake.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  using tutti::data::JpegDecoder;
  static JpegDecoder ours(1 << 16), theirs(1 << 16, JpegDecoder::Reader::kLibjpeg);
  const absl::string_view encoded(reinterpret_cast<const char*>(data) + 3, size - 3);
  const auto image = ours.Open(encoded);
  if (image.status() != theirs.Open(encoded).status()) std::abort();
  if (!image.ok()) return 0;
  tutti::data::Region region{data[0] % image->width, data[1] % image->height};
  region.width = std::min(image->width - region.left, 1 + data[2]);
  region.height = std::min(image->height - region.top, 1 + data[2] / 4 * (1 + data[0] % 4));
  const int denominator = 1 << data[2] % 4;
  const auto one = ours.DecodePlanes(region, denominator);
  const auto other = theirs.DecodePlanes(region, denominator);
  if (one.status() != other.status()) std::abort();
  if (!one.ok()) return 0;
  if (!SameSamples(*one, *other, region, denominator)) std::abort();
  return 0;
}
