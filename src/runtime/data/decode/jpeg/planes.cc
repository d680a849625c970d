#include "runtime/data/decode/jpeg/planes.h"

namespace tutti::data {

Planes SplitIntoPlanes(const ImageView& view, int left, int top, ImageSize whole,
                       std::vector<uint8_t>& memory) {
  const size_t count = static_cast<size_t>(view.width) * static_cast<size_t>(view.height);
  if (memory.size() < 3 * count + kPlanePadding) memory.resize(3 * count + kPlanePadding);
  Planes planes;
  for (size_t c = 0; c < 3; ++c) {
    uint8_t* samples = memory.data() + c * count;
    for (size_t i = 0; i < count; ++i) samples[i] = view.pixels[i * kBytesPerPixel + c];
    planes.plane[c] = {samples, static_cast<size_t>(view.width), left, top, whole};
  }
  return planes;
}

}  // namespace tutti::data
