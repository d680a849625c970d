// Any bytes as a mask and as boxes: an error, or levels and boxes that an image's way takes into a
// batch.
#include <cstdint>
#include <vector>

#include "runtime/data/annotation/boxes.h"
#include "runtime/data/annotation/mask.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::data;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const Geometry geometry{.source = {7, 5}, .left = -1, .top = 2, .flip = size % 2 == 1};
  volatile float sink = 0;
  if (const auto boxes = ParseBoxes(text, 3); boxes.ok()) {
    Box placed;
    for (const Box& box : *boxes) {
      if (PlaceBox(box, geometry, {4, 4}, placed)) sink = placed.right - placed.left;
    }
  }
  std::vector<uint8_t> memory, out(4 * 4);
  if (const auto mask = DecodeMask(text, memory); mask.ok()) {
    if (CheckMask(*mask, mask->size, 3).ok()) PlaceMask(*mask, geometry, {4, 4}, out.data());
  }
  (void)sink;
  return 0;
}
