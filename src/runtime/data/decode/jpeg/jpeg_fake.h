// Makes JPEG files in memory for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tutti::data {

struct JpegOptions {
  int width = 32;
  int height = 32;
  int quality = 95;
  int components = 3;     // 1 grey, 3 RGB in, 4 CMYK
  bool subsample = true;  // chroma at half the resolution both ways (4:2:0)
  bool progressive = false;
  int across = 0,
      down = 0;  // blocks of brightness in a coded unit, one of each colour; 0: see above
  int restart_interval = 0;  // in coded units
  bool optimize = false;     // codes of its own
  bool rgb = false;          // kept as RGB
};

// `pixel(x, y, c)` is the value of component c.
std::string EncodeJpeg(const JpegOptions& options,
                       const std::function<uint8_t(int x, int y, int c)>& pixel);

// Returns a smooth image with structure in both directions and in all components, different by
// `seed`.
std::string EncodePattern(const JpegOptions& options, int seed = 0);

// Returns an image without any structure, which takes the longest codes.
std::string EncodeNoise(const JpegOptions& options, unsigned seed = 1);

}  // namespace tutti::data
