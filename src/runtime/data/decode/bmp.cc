// Reads Windows' bitmaps (BMP) that are not compressed: of palettes with 1, 4 or 8 bits, of 24
// and of 32 bits a pixel, with the first row at the top or at the bottom.
#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

constexpr uint32_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr uint32_t kUncompressed = 0, kBitFields = 3,
                   kAlphaBitFields = 6;  // compressions that are none

struct Bmp {
  ImageSize size;
  bool top_down = false;
  int bits = 0;                          // of a pixel
  std::array<size_t, 3> at = {2, 1, 0};  // where R, G and B lie in a pixel of 24 or 32 bits
  std::vector<std::array<uint8_t, 3>> palette;
  size_t stride = 0;  // of rows
  absl::string_view rows;
};

// Little-endian numbers; what lies behind the end is 0.
uint32_t NumberAt(absl::string_view bytes, size_t at, size_t size = 4) {
  uint32_t value = 0;
  for (size_t i = 0; i < size && at + i < bytes.size(); ++i) {
    value |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << 8 * i;
  }
  return value;
}

absl::Status DamagedBmp(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("damaged BMP: ", why));
}

absl::Status ReadSize(absl::string_view file, bool core, int64_t max_pixels, Bmp& bmp) {
  const auto side = [&](size_t at_core, size_t at) -> int64_t {
    if (core) return NumberAt(file, at_core, 2);
    return static_cast<int32_t>(NumberAt(file, at));
  };
  const int64_t width = side(18, 18), height = side(20, 22);
  bmp.top_down = height < 0;
  const int64_t rows = bmp.top_down ? -height : height;
  if (width <= 0 || rows == 0) return DamagedBmp("its header says no width or height");
  if (rows > max_pixels / width) {
    return absl::InvalidArgumentError(
        absl::StrCat("a BMP image of ", width, "x", rows, " pixels; the most is ", max_pixels));
  }
  bmp.size = {static_cast<int>(width), static_cast<int>(rows)};
  return absl::OkStatus();
}

// Which bytes of a pixel the colours are, by masks behind the header.
bool ReadMasks(absl::string_view file, Bmp& bmp) {
  for (size_t c = 0; c < 3; ++c) {
    const uint32_t mask = NumberAt(file, kFileHeader + kInfoHeader + 4 * c);
    size_t byte = 0;
    while (byte < 4 && mask != uint32_t{0xFF} << 8 * byte) ++byte;
    if (byte == 4) return false;
    bmp.at[c] = byte;
  }
  return true;
}

void ReadPalette(absl::string_view file, size_t begin, bool core, uint32_t used, size_t end,
                 Bmp& bmp) {
  const size_t entry = core ? 3 : 4, most = size_t{1} << bmp.bits;
  size_t count = used == 0 ? most : std::min<size_t>(used, most);
  if (end > begin) count = std::min(count, (end - begin) / entry);
  bmp.palette.assign(most, {});  // what it lacks is black
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      bmp.palette[i][c] = static_cast<uint8_t>(NumberAt(file, begin + i * entry + 2 - c, 1));
    }
  }
}

absl::Status FindRows(absl::string_view file, size_t begin, Bmp& bmp) {
  const size_t width = static_cast<size_t>(bmp.size.width),
               bits = width * static_cast<size_t>(bmp.bits);
  const size_t height = static_cast<size_t>(bmp.size.height);
  bmp.stride = (bits + 31) / 32 * 4;
  const size_t needed =
      bmp.stride * (height - 1) + (bits + 7) / 8;  // the last may lack its padding
  const size_t there = file.size() - std::min(begin, file.size());
  if (there < needed) {
    return DamagedBmp(absl::StrCat(there, " bytes of pixels; ", bmp.size.width, "x",
                                   bmp.size.height, " of ", bmp.bits, " bits need ", needed));
  }
  bmp.rows = file.substr(begin);
  return absl::OkStatus();
}

absl::StatusOr<Bmp> ParseBmp(absl::string_view file, int64_t max_pixels) {
  Bmp bmp;
  const size_t header = NumberAt(file, kFileHeader);
  const bool core = header == kCoreHeader;
  if (file.size() < kFileHeader + header || (!core && header < kInfoHeader)) {
    return DamagedBmp("its header is cut short");
  }
  TUTTI_RETURN_IF_ERROR(ReadSize(file, core, max_pixels, bmp));
  bmp.bits = static_cast<int>(NumberAt(file, core ? 24 : 28, 2));
  const uint32_t compression = core ? kUncompressed : NumberAt(file, 30);
  const bool masks =
      (compression == kBitFields || compression == kAlphaBitFields) && bmp.bits == 32;
  const bool known =
      bmp.bits == 1 || bmp.bits == 4 || bmp.bits == 8 || bmp.bits == 24 || bmp.bits == 32;
  if (!known || (compression != kUncompressed && !(masks && ReadMasks(file, bmp)))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a BMP image of ", bmp.bits, " bits a pixel with compression ", compression,
                     "; read are uncompressed ones of 1, 4, 8, 24 and 32 bits: convert it to PNG"));
  }
  const size_t pixels = NumberAt(file, 10);
  if (bmp.bits <= 8) {
    ReadPalette(file, kFileHeader + header, core, core ? 0 : NumberAt(file, 46), pixels, bmp);
  }
  TUTTI_RETURN_IF_ERROR(FindRows(file, pixels, bmp));
  return bmp;
}

void DecodeRow(const Bmp& bmp, const uint8_t* from, uint8_t* to) {
  const size_t width = static_cast<size_t>(bmp.size.width), bits = static_cast<size_t>(bmp.bits);
  for (size_t x = 0; x < width; ++x, to += kBytesPerPixel) {
    if (bits > 8) {
      for (size_t c = 0; c < 3; ++c) to[c] = from[x * bits / 8 + bmp.at[c]];
    } else {
      const size_t bit = x * bits;
      const size_t index = (from[bit / 8] >> (8 - bits - bit % 8)) & ((size_t{1} << bits) - 1);
      std::memcpy(to, bmp.palette[index].data(), 3);
    }
  }
}

bool IsBmp(absl::string_view encoded) { return absl::StartsWith(encoded, "BM"); }

absl::StatusOr<ImageSize> SizeOfBmp(absl::string_view encoded, int64_t max_pixels) {
  TUTTI_ASSIGN_OR_RETURN(const Bmp bmp, ParseBmp(encoded, max_pixels));
  return bmp.size;
}

absl::StatusOr<ImageView> DecodeBmp(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  TUTTI_ASSIGN_OR_RETURN(const Bmp bmp, ParseBmp(encoded, max_pixels));
  const size_t width = static_cast<size_t>(bmp.size.width),
               height = static_cast<size_t>(bmp.size.height);
  const size_t stride = width * kBytesPerPixel;
  if (memory.size() < stride * height) memory.resize(stride * height);
  const auto* const rows = reinterpret_cast<const uint8_t*>(bmp.rows.data());
  for (size_t y = 0; y < height; ++y) {
    const size_t row = bmp.top_down ? y : height - 1 - y;
    DecodeRow(bmp, rows + row * bmp.stride, memory.data() + y * stride);
  }
  return ImageView{memory.data(), bmp.size.width, bmp.size.height};
}

}  // namespace

extern const ImageCodec kBmpCodec;
const ImageCodec kBmpCodec = {"BMP", {"bmp", ""}, IsBmp, WholeReader<SizeOfBmp, DecodeBmp>};

}  // namespace tutti::data
