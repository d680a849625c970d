// Reads PNG to what Pillow makes of it: of 16 bits the upper 8, whatever gAMA, iCCP or cHRM would
// make of the levels; what is transparent is left out.
//
// By libpng's lower interface, which leaves levels as they are. Its simplified one manages colours:
// it takes 16 bits for linear light, and gAMA for what the levels are to be corrected by.
#include "runtime/data/decode/png_image.h"

#include <png.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

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

// Reads one PNG from its beginning. Each step returns false after an error, which libpng leaves by
// longjmp: nothing in them has a destructor.
class PngReading {
 public:
  explicit PngReading(absl::string_view encoded)
      : input_{encoded},
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, KeepPngError,
                                    [](png_structp, png_const_charp) {})),
        info_(png_create_info_struct(png_)) {
    png_set_read_fn(png_, &input_, TakePngBytes);
  }
  ~PngReading() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;

  bool ReadHeader() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_benign_errors(png_, 1);
    // Of chunks beside IHDR, PLTE, tRNS and IDAT nothing is used; they are not even unpacked.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  // Has rows given as levels or palette indices, one byte each up to 8 bits.
  bool AskForIndices() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_packing(png_);
    Begin();
    return true;
  }

  // Has rows given as R, G, B and what is not transparent, of 16 bits the upper 8.
  bool AskForRgba() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_add_alpha(png_, 0xFF, PNG_FILLER_AFTER);
    Begin();
    return true;
  }

  // Reads rows of `stride` bytes; an interlaced image's in several passes.
  bool ReadRows(uint8_t* rows, size_t stride) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass) {
      for (size_t y = 0; y < height(); ++y) png_read_row(png_, rows + y * stride, nullptr);
    }
    return true;
  }

  bool ReadEnd() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_end(png_, nullptr);
    return true;
  }

  size_t width() const { return png_get_image_width(png_, info_); }
  size_t height() const { return png_get_image_height(png_, info_); }
  // Whether rows have one byte a pixel, a grey level or a palette's index.
  bool IsOfIndices() const {
    const auto type = png_get_color_type(png_, info_);
    return (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE) &&
           png_get_bit_depth(png_, info_) == 8;
  }
  absl::Status Damaged() const {
    return absl::DataLossError(absl::StrCat("damaged PNG: ", input_.error));
  }

 private:
  void Begin() {
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  PngInput input_;
  png_structp png_;
  png_infop info_;
  int passes_ = 1;
};

absl::StatusOr<ImageSize> Begin(PngReading& png, int64_t max_pixels) {
  if (!png.ReadHeader()) return png.Damaged();
  const int64_t pixels = static_cast<int64_t>(png.width()) * static_cast<int64_t>(png.height());
  if (pixels > max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("a PNG of ", png.width(), "x", png.height(),
                                                   " pixels; the most is ", max_pixels));
  }
  return ImageSize{static_cast<int>(png.width()), static_cast<int>(png.height())};
}

bool IsPng(absl::string_view encoded) { return absl::StartsWith(encoded, "\x89PNG"); }

absl::StatusOr<ImageSize> SizeOfPng(absl::string_view encoded, int64_t max_pixels) {
  PngReading png(encoded);
  return Begin(png, max_pixels);
}

absl::StatusOr<ImageView> DecodePng(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  PngReading png(encoded);
  TUTTI_ASSIGN_OR_RETURN(const ImageSize size, Begin(png, max_pixels));
  if (!png.AskForRgba()) return png.Damaged();
  const size_t stride = png.width() * kBytesPerPixel, bytes = stride * png.height();
  if (memory.size() < bytes) memory.resize(bytes);
  if (!png.ReadRows(memory.data(), stride)) return png.Damaged();
  return ImageView{memory.data(), size.width, size.height};
}

}  // namespace

absl::StatusOr<ImageSize> DecodePngIndices(absl::string_view encoded, int64_t max_pixels,
                                           std::vector<uint8_t>& memory) {
  PngReading png(encoded);
  TUTTI_ASSIGN_OR_RETURN(const ImageSize size, Begin(png, max_pixels));
  if (!png.AskForIndices()) return png.Damaged();
  if (!png.IsOfIndices()) {
    return absl::InvalidArgumentError(
        "a PNG of colours or of 16 bits; wanted are grey levels or a palette, of 8 bits at most");
  }
  memory.resize(png.width() * png.height());
  if (!png.ReadRows(memory.data(), png.width()) || !png.ReadEnd()) return png.Damaged();
  return size;
}

extern const ImageCodec kPngCodec;
const ImageCodec kPngCodec = {"PNG", {"png", ""}, IsPng, WholeReader<SizeOfPng, DecodePng>};

}  // namespace tutti::data
