// DecodePngIndices: by libpng's lower interface, which leaves levels and palette indices alone.
#include <png.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/png_image.h"

namespace tutti::data {
namespace {

struct PngInput {
  absl::string_view rest;
  char error[96] = "";
};

void TakePngBytes(png_structp png, png_bytep to, size_t bytes) {
  auto* const input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (bytes > input->rest.size()) png_error(png, "it ends too soon");
  std::memcpy(to, input->rest.data(), bytes);
  input->rest.remove_prefix(bytes);
}

[[noreturn]] void KeepPngError(png_structp png, png_const_charp message) {
  auto* const input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->error, message, sizeof(input->error) - 1);
  png_longjmp(png, 1);
}

struct PngReading {
  explicit PngReading(PngInput& input)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, KeepPngError,
                                   [](png_structp, png_const_charp) {})),
        info(png_create_info_struct(png)) {
    png_set_read_fn(png, &input, TakePngBytes);
  }
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;
  png_structp png;
  png_infop info;
};

// False after an error, which libpng leaves by longjmp: nothing here has a destructor.
bool ReadPngHeader(const PngReading& reading) {
  if (setjmp(png_jmpbuf(reading.png)) != 0) return false;
  png_read_info(reading.png, reading.info);
  png_set_packing(reading.png);
  png_set_interlace_handling(reading.png);
  png_read_update_info(reading.png, reading.info);
  return true;
}

bool ReadPngRows(const PngReading& reading, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reading.png)) != 0) return false;
  png_read_image(reading.png, rows);
  png_read_end(reading.png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<ImageSize> DecodePngIndices(absl::string_view encoded, int64_t max_pixels,
                                           std::vector<uint8_t>& memory) {
  TUTTI_RETURN_IF_ERROR(SizeOfPng(encoded, max_pixels).status());
  PngInput input{encoded};
  const PngReading reading(input);
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrCat("damaged PNG: ", input.error));
  };
  if (!ReadPngHeader(reading)) return damaged();
  const auto type = png_get_color_type(reading.png, reading.info);
  if ((type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE) ||
      png_get_bit_depth(reading.png, reading.info) != 8) {
    return absl::InvalidArgumentError(
        "a PNG of colours or of 16 bits; wanted are grey levels or a palette, of 8 bits at most");
  }
  const size_t width = png_get_image_width(reading.png, reading.info);
  const size_t height = png_get_image_height(reading.png, reading.info);
  memory.resize(width * height);
  std::vector<png_bytep> rows(height);
  for (size_t y = 0; y < height; ++y) rows[y] = memory.data() + y * width;
  if (!ReadPngRows(reading, rows.data())) return damaged();
  return ImageSize{static_cast<int>(width), static_cast<int>(height)};
}

}  // namespace tutti::data
