#include "runtime/data/decode/jpeg/jpeg_fake.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include <random>
#include <vector>

namespace tutti::data {
namespace {

J_COLOR_SPACE ColorSpaceOf(int components) {
  return components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
}

void Configure(jpeg_compress_struct& info, const JpegOptions& options) {
  info.image_width = static_cast<JDIMENSION>(options.width);
  info.image_height = static_cast<JDIMENSION>(options.height);
  info.input_components = options.components;
  info.in_color_space = ColorSpaceOf(options.components);
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.rgb) jpeg_set_colorspace(&info, JCS_RGB);
  if (!options.subsample) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (options.across > 0) info.comp_info[0].h_samp_factor = options.across;
  if (options.down > 0) info.comp_info[0].v_samp_factor = options.down;
  info.restart_interval = static_cast<unsigned>(options.restart_interval);
  info.optimize_coding = options.optimize ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&info);
}

}  // namespace

std::string EncodeJpeg(const JpegOptions& options,
                       const std::function<uint8_t(int x, int y, int c)>& pixel) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  Configure(info, options);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row;
  for (int y = 0; y < options.height; ++y) {
    row.clear();
    for (int x = 0; x < options.width; ++x) {
      for (int c = 0; c < options.components; ++c) row.push_back(pixel(x, y, c));
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string jpeg(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return jpeg;
}

std::string EncodePattern(const JpegOptions& options, int seed) {
  return EncodeJpeg(options, [&](int x, int y, int c) {
    const double wave = std::sin(0.13 * x + seed) * std::cos(0.09 * y + 2 * c) +
                        0.5 * std::sin(0.31 * (x + y) + c + 0.7 * seed);
    return static_cast<uint8_t>(127.5 + 80 * wave);
  });
}

std::string EncodeNoise(const JpegOptions& options, unsigned seed) {
  std::minstd_rand random(seed);
  return EncodeJpeg(options, [&](int, int, int) { return static_cast<uint8_t>(random() >> 8); });
}

}  // namespace tutti::data
