// Reads the first image of a TIFF by libtiff, where the build had its headers and the machine has
// it, turned as the file says, to what Pillow makes of it: of 16 bits the upper 8; what is
// transparent is left out.
//
// Grey levels and RGB of 8 and 16 bits are read as they are. What else there is (palettes, fewer
// bits, YCbCr, CMYK), libtiff converts to RGBA; of 16 bits it would round, and multiply by alpha.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

#ifdef TUTTI_HAS_TIFF
#include <dlfcn.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#endif

namespace tutti::data {
namespace {

// Tells classic and big TIFF, of both orders of bytes.
bool IsTiff(absl::string_view encoded) {
  const absl::string_view start = encoded.substr(0, 4);
  return start == absl::string_view("II*\0", 4) || start == absl::string_view("MM\0*", 4) ||
         start == absl::string_view("II+\0", 4) || start == absl::string_view("MM\0+", 4);
}

#ifdef TUTTI_HAS_TIFF

// libtiff, which is loaded when the first TIFF image comes: wheels do not carry it, since it needs
// libjbig, whose licence is the GPL. Null functions: it is not on this machine.
struct TiffLibrary {
#define TUTTI_TIFF_FUNCTIONS(X)           \
  X(TIFFClientOpenExt)                    \
  X(TIFFClose)                            \
  X(TIFFGetField)                         \
  X(TIFFGetFieldDefaulted)                \
  X(TIFFIsTiled)                          \
  X(TIFFOpenOptionsAlloc)                 \
  X(TIFFOpenOptionsFree)                  \
  X(TIFFOpenOptionsSetErrorHandlerExtR)   \
  X(TIFFOpenOptionsSetMaxSingleMemAlloc)  \
  X(TIFFOpenOptionsSetWarningHandlerExtR) \
  X(TIFFRGBAImageOK)                      \
  X(TIFFReadRGBAImageOriented)            \
  X(TIFFReadScanline)                     \
  X(TIFFReadTile)                         \
  X(TIFFScanlineSize)                     \
  X(TIFFTileRowSize)                      \
  X(TIFFTileSize)
#define TUTTI_DECLARE(name) decltype(&::name) name = nullptr;
  TUTTI_TIFF_FUNCTIONS(TUTTI_DECLARE)
#undef TUTTI_DECLARE

  TiffLibrary() {
    void* const library = ::dlopen("libtiff.so.6", RTLD_NOW | RTLD_LOCAL);  // it stays loaded
    if (library == nullptr) return;
    loaded = true;
#define TUTTI_FIND(name)                                            \
  name = reinterpret_cast<decltype(name)>(::dlsym(library, #name)); \
  loaded = loaded && name != nullptr;
    TUTTI_TIFF_FUNCTIONS(TUTTI_FIND)
#undef TUTTI_FIND
#undef TUTTI_TIFF_FUNCTIONS
  }
  bool loaded = false;
};

const TiffLibrary& Lib() {
  static const TiffLibrary library;
  return library;
}

absl::Status CheckLibrary() {
  if (Lib().loaded) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a TIFF image, and this machine has no libtiff.so.6: install Debian's libtiff6, or convert "
      "the image to PNG");
}

constexpr tmsize_t kMostBytesAtOnce = tmsize_t{1} << 29;  // of a strip or tile

// The file, as libtiff reads it, and what it says is wrong.
struct TiffInput {
  absl::string_view file;
  uint64_t position = 0;
  char error[160] = "";
};

TiffInput& InputOf(thandle_t handle) { return *static_cast<TiffInput*>(handle); }

tmsize_t ReadTiff(thandle_t handle, void* to, tmsize_t size) {
  TiffInput& input = InputOf(handle);
  const uint64_t left = input.file.size() - std::min<uint64_t>(input.position, input.file.size());
  const size_t count = static_cast<size_t>(std::min<uint64_t>(left, static_cast<uint64_t>(size)));
  if (count > 0) std::memcpy(to, input.file.data() + input.position, count);
  input.position += count;
  return static_cast<tmsize_t>(count);
}

toff_t SeekTiff(thandle_t handle, toff_t offset, int whence) {
  TiffInput& input = InputOf(handle);
  const uint64_t from = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? input.position
                                             : input.file.size();
  return input.position = from + offset;
}

int KeepTiffError(TIFF*, void* input, const char*, const char* format, va_list arguments) {
  char* const error = static_cast<TiffInput*>(input)->error;
  if (error[0] == '\0') std::vsnprintf(error, sizeof(TiffInput::error), format, arguments);
  return 1;  // no other handler, which would print it
}

int PassOverWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* tiff) const { Lib().TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff OpenTiff(TiffInput& input) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(
      Lib().TIFFOpenOptionsAlloc(), Lib().TIFFOpenOptionsFree);
  Lib().TIFFOpenOptionsSetErrorHandlerExtR(options.get(), KeepTiffError, &input);
  Lib().TIFFOpenOptionsSetWarningHandlerExtR(options.get(), PassOverWarning, nullptr);
  Lib().TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostBytesAtOnce);
  return Tiff(Lib().TIFFClientOpenExt(
      "image", "rm", &input, ReadTiff, [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; },
      SeekTiff, [](thandle_t) { return 0; },
      [](thandle_t handle) { return toff_t{InputOf(handle).file.size()}; }, nullptr, nullptr,
      options.get()));
}

absl::Status DamagedTiff(const TiffInput& input) {
  return absl::DataLossError(absl::StrCat("damaged TIFF: ", input.error));
}

// What the file's tags say of the image.
struct TiffLayout {
  ImageSize size;  // before it is turned
  uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, photometric = PHOTOMETRIC_MINISBLACK;
  uint16_t planes = PLANARCONFIG_CONTIG, orientation = ORIENTATION_TOPLEFT, alpha = 0;

  bool IsGrey() const {
    return photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
  }
  // Whether samples are the levels, with or without alpha.
  bool IsPlain() const {
    const int colours = IsGrey() ? 1 : 3;
    return (IsGrey() || photometric == PHOTOMETRIC_RGB) && format == SAMPLEFORMAT_UINT &&
           (bits == 8 || bits == 16) && (samples == colours || samples == colours + 1);
  }
  bool Lies() const { return orientation > ORIENTATION_BOTLEFT; }
};

absl::StatusOr<TiffLayout> ReadLayout(const Tiff& tiff, const TiffInput& input,
                                      int64_t max_pixels) {
  if (tiff == nullptr) return DamagedTiff(input);
  TiffLayout layout;
  uint32_t width = 0, height = 0;
  Lib().TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  Lib().TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  if (width == 0 || height == 0)
    return absl::DataLossError("damaged TIFF: it says no width or height");
  if (height > max_pixels / width) {
    return absl::InvalidArgumentError(
        absl::StrCat("a TIFF image of ", width, "x", height, " pixels; the most is ", max_pixels));
  }
  layout.size = {static_cast<int>(width), static_cast<int>(height)};
  Lib().TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_BITSPERSAMPLE, &layout.bits);
  Lib().TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_SAMPLESPERPIXEL, &layout.samples);
  Lib().TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_SAMPLEFORMAT, &layout.format);
  Lib().TIFFGetField(tiff.get(), TIFFTAG_PHOTOMETRIC, &layout.photometric);
  Lib().TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_PLANARCONFIG, &layout.planes);
  Lib().TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &layout.orientation);
  uint16_t extra = 0;
  const uint16_t* kinds = nullptr;
  if (Lib().TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds) != 0 && extra > 0) {
    layout.alpha = kinds[0];
  }
  return layout;
}

// Puts samples of one row, from (x, y) on, into the pixels.
class TiffPixels {
 public:
  TiffPixels(const TiffLayout& layout, uint8_t* pixels) : layout_(layout), pixels_(pixels) {}

  // `plane`: of samples that lie apart, which they are.
  void Put(int x, int y, int count, const uint8_t* samples, uint16_t plane) const {
    const bool apart = layout_.planes == PLANARCONFIG_SEPARATE;
    const size_t step = apart ? 1 : layout_.samples;
    uint8_t* to = pixels_ + (static_cast<size_t>(y) * static_cast<size_t>(layout_.size.width) +
                             static_cast<size_t>(x)) *
                                kBytesPerPixel;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i, to += kBytesPerPixel) {
      for (size_t s = 0; s < step; ++s) Set(to, apart ? plane : s, LevelAt(samples, i * step + s));
    }
  }

 private:
  uint8_t LevelAt(const uint8_t* samples, size_t at) const {
    uint16_t level = samples[at];
    if (layout_.bits == 16) {
      std::memcpy(&level, samples + 2 * at, 2);  // in this machine's order
      level >>= 8;
    }
    return static_cast<uint8_t>(layout_.photometric == PHOTOMETRIC_MINISWHITE ? 255 - level
                                                                              : level);
  }
  void Set(uint8_t* pixel, size_t sample, uint8_t level) const {
    const size_t colours = layout_.IsGrey() ? 1 : 3;
    if (sample >= colours) {
      pixel[3] = level;
    } else if (layout_.IsGrey()) {
      std::fill_n(pixel, 3, level);
    } else {
      pixel[sample] = level;
    }
  }

  const TiffLayout& layout_;
  uint8_t* const pixels_;
};

bool ReadTiles(TIFF* tiff, const TiffLayout& layout, uint16_t plane, const TiffPixels& pixels) {
  uint32_t width = 0, height = 0;
  Lib().TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  Lib().TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  const tmsize_t bytes = Lib().TIFFTileSize(tiff), stride = Lib().TIFFTileRowSize(tiff);
  if (width == 0 || height == 0 || bytes <= 0 || bytes > kMostBytesAtOnce) return false;
  std::vector<uint8_t> tile(static_cast<size_t>(bytes));
  for (int64_t y = 0; y < layout.size.height; y += height) {
    for (int64_t x = 0; x < layout.size.width; x += width) {
      if (Lib().TIFFReadTile(tiff, tile.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                             0, plane) < 0) {
        return false;
      }
      const auto count = static_cast<int>(std::min<int64_t>(width, layout.size.width - x));
      const int64_t rows = std::min<int64_t>(height, layout.size.height - y);
      for (int64_t row = 0; row < rows; ++row) {
        pixels.Put(static_cast<int>(x), static_cast<int>(y + row), count,
                   tile.data() + row * stride, plane);
      }
    }
  }
  return true;
}

bool ReadLines(TIFF* tiff, const TiffLayout& layout, uint16_t plane, const TiffPixels& pixels) {
  const tmsize_t bytes = Lib().TIFFScanlineSize(tiff);
  if (bytes <= 0 || bytes > kMostBytesAtOnce) return false;
  std::vector<uint8_t> line(static_cast<size_t>(bytes));
  for (int y = 0; y < layout.size.height; ++y) {
    if (Lib().TIFFReadScanline(tiff, line.data(), static_cast<uint32_t>(y), plane) < 0)
      return false;
    pixels.Put(0, y, layout.size.width, line.data(), plane);
  }
  return true;
}

// Levels that were multiplied by alpha become those of the colour.
void Divide(uint8_t* pixels, size_t count) {
  for (uint8_t* pixel = pixels; pixel != pixels + count * kBytesPerPixel; pixel += kBytesPerPixel) {
    const int alpha = pixel[3];
    for (int c = 0; c < 3; ++c) {
      pixel[c] = static_cast<uint8_t>(alpha == 0 ? 0 : std::min(255, 255 * pixel[c] / alpha));
    }
  }
}

bool ReadPlain(TIFF* tiff, const TiffLayout& layout, uint8_t* pixels, size_t count) {
  const TiffPixels put(layout, pixels);
  const uint16_t planes = layout.planes == PLANARCONFIG_SEPARATE ? layout.samples : 1;
  for (uint16_t plane = 0; plane < planes; ++plane) {
    if (!(Lib().TIFFIsTiled(tiff) != 0 ? ReadTiles : ReadLines)(tiff, layout, plane, put))
      return false;
  }
  if (layout.alpha == EXTRASAMPLE_ASSOCALPHA && layout.samples == 4) Divide(pixels, count);
  return true;
}

// Rows and columns as the file says that the image is to be seen.
void Turn(const TiffLayout& layout, const std::vector<uint8_t>& from, uint8_t* to) {
  const int o = layout.orientation, width = layout.size.width, height = layout.size.height;
  const bool mirrored = o == 2 || o == 3 || o == 7 || o == 8;
  const bool upside_down = o == 3 || o == 4 || o == 6 || o == 7;
  for (int y = 0; y < (layout.Lies() ? width : height); ++y) {
    for (int x = 0; x < (layout.Lies() ? height : width); ++x, to += kBytesPerPixel) {
      int u = layout.Lies() ? y : x, v = layout.Lies() ? x : y;
      if (mirrored) u = width - 1 - u;
      if (upside_down) v = height - 1 - v;
      std::memcpy(to, from.data() + (size_t(v) * size_t(width) + size_t(u)) * kBytesPerPixel,
                  kBytesPerPixel);
    }
  }
}

// A tile is read whole: one that is far larger than its image is an attack on the memory.
absl::Status CheckTiles(TIFF* tiff, const ImageSize& size) {
  if (Lib().TIFFIsTiled(tiff) == 0) return absl::OkStatus();
  static constexpr uint32_t kUsual = 4096;  // pixels a side
  uint32_t width = 0, height = 0;
  Lib().TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  Lib().TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  const auto fits = [](uint32_t tile, int image) {
    return tile <= std::max(kUsual, static_cast<uint32_t>(image) + 15);
  };
  if (fits(width, size.width) && fits(height, size.height)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a TIFF image of ", size.width, "x", size.height,
                                                 " pixels with tiles of ", width, "x", height));
}

absl::Status Read(const Tiff& tiff, TiffInput& input, const TiffLayout& layout, uint8_t* pixels,
                  size_t count) {
  TUTTI_RETURN_IF_ERROR(CheckTiles(tiff.get(), layout.size));
  if (layout.IsPlain()) {
    return ReadPlain(tiff.get(), layout, pixels, count) ? absl::OkStatus() : DamagedTiff(input);
  }
  if (layout.format != SAMPLEFORMAT_UINT && layout.format != SAMPLEFORMAT_VOID) {
    return absl::InvalidArgumentError(
        "a TIFF image of signed or floating-point samples; read are whole ones from 0");
  }
  char why[1024] = "";
  if (Lib().TIFFRGBAImageOK(tiff.get(), why) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a TIFF image of a kind that is not read: ", why));
  }
  // In the file's own orientation: it is turned later.
  if (Lib().TIFFReadRGBAImageOriented(tiff.get(), static_cast<uint32_t>(layout.size.width),
                                      static_cast<uint32_t>(layout.size.height),
                                      reinterpret_cast<uint32_t*>(pixels), layout.orientation,
                                      1) == 0) {
    return DamagedTiff(input);
  }
  return absl::OkStatus();
}

absl::StatusOr<ImageSize> SizeOfTiff(absl::string_view encoded, int64_t max_pixels) {
  TUTTI_RETURN_IF_ERROR(CheckLibrary());
  TiffInput input{encoded};
  const Tiff tiff = OpenTiff(input);
  TUTTI_ASSIGN_OR_RETURN(const TiffLayout layout, ReadLayout(tiff, input, max_pixels));
  if (layout.Lies()) return ImageSize{layout.size.height, layout.size.width};
  return layout.size;
}

absl::StatusOr<ImageView> DecodeTiff(absl::string_view encoded, int64_t max_pixels,
                                     std::vector<uint8_t>& memory) {
  TUTTI_RETURN_IF_ERROR(CheckLibrary());
  TiffInput input{encoded};
  const Tiff tiff = OpenTiff(input);
  TUTTI_ASSIGN_OR_RETURN(const TiffLayout layout, ReadLayout(tiff, input, max_pixels));
  const ImageSize size = layout.size;
  const size_t count = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  if (memory.size() < count * kBytesPerPixel) memory.resize(count * kBytesPerPixel);
  if (layout.orientation == ORIENTATION_TOPLEFT) {
    TUTTI_RETURN_IF_ERROR(Read(tiff, input, layout, memory.data(), count));
    return ImageView{memory.data(), size.width, size.height};
  }
  std::vector<uint8_t> lying(count * kBytesPerPixel);
  TUTTI_RETURN_IF_ERROR(Read(tiff, input, layout, lying.data(), count));
  Turn(layout, lying, memory.data());
  if (layout.Lies()) return ImageView{memory.data(), size.height, size.width};
  return ImageView{memory.data(), size.width, size.height};
}

#else

absl::Status WithoutTiff() {
  return absl::FailedPreconditionError(
      "a TIFF image, and this tutti was built without libtiff: install libtiff-dev where it is "
      "built and build it anew, or convert the image to PNG");
}

absl::StatusOr<ImageSize> SizeOfTiff(absl::string_view, int64_t) { return WithoutTiff(); }

absl::StatusOr<ImageView> DecodeTiff(absl::string_view, int64_t, std::vector<uint8_t>&) {
  return WithoutTiff();
}

#endif

}  // namespace

extern const ImageCodec kTiffCodec;
const ImageCodec kTiffCodec = {
    "TIFF", {"tif", "tiff"}, IsTiff, WholeReader<SizeOfTiff, DecodeTiff>};

}  // namespace tutti::data
