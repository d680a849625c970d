#include "runtime/data/decode/pnm.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

// The next number of a header, up to seven digits, after white space and comments.
std::optional<int> TakeNumber(absl::string_view& rest) {
  while (!rest.empty() && (absl::ascii_isspace(rest[0]) || rest[0] == '#')) {
    const bool comment = rest[0] == '#';
    rest.remove_prefix(comment ? std::min(rest.find('\n'), rest.size()) : 1);
  }
  size_t digits = 0;
  int value = 0;
  for (; digits < rest.size() && digits < 7 && absl::ascii_isdigit(rest[digits]); ++digits) {
    value = 10 * value + (rest[digits] - '0');
  }
  if (digits == 0) return std::nullopt;
  rest.remove_prefix(digits);
  return value;
}

}  // namespace

absl::StatusOr<Pnm> ParsePnm(absl::string_view file, int64_t max_pixels) {
  const bool grey = absl::StartsWith(file, "P5");
  if (!grey && !absl::StartsWith(file, "P6")) {
    return absl::InvalidArgumentError("not a PNM image of type P5 or P6");
  }
  absl::string_view rest = file.substr(2);
  const auto width = TakeNumber(rest), height = TakeNumber(rest), levels = TakeNumber(rest);
  if (!width || !height || !levels || *width < 1 || *height < 1 || rest.empty() ||
      !absl::ascii_isspace(rest[0])) {
    return absl::DataLossError("damaged PNM: its header does not say width, height and levels");
  }
  rest.remove_prefix(1);
  if (*levels != 255) {
    return absl::InvalidArgumentError(
        absl::StrCat("a PNM image of ", *levels, " levels; only 255 are supported"));
  }
  const int64_t pixels = int64_t{*width} * *height;
  if (pixels > max_pixels) {
    return absl::InvalidArgumentError(
        absl::StrCat("a PNM image of ", *width, "x", *height, " pixels; the most is ", max_pixels));
  }
  const int channels = grey ? 1 : 3;
  if (static_cast<int64_t>(rest.size()) != pixels * channels) {
    return absl::DataLossError(absl::StrCat("damaged PNM: ", rest.size(), " bytes of pixels; ",
                                            *width, "x", *height, " need ", pixels * channels));
  }
  return Pnm{{*width, *height}, channels, rest};
}

std::string PnmHeader(ImageSize size, int channels) {
  return absl::StrCat(channels == 1 ? "P5\n" : "P6\n", size.width, " ", size.height, "\n255\n");
}

namespace {

bool IsGreyPnm(absl::string_view encoded) { return absl::StartsWith(encoded, "P5"); }

bool IsPnm(absl::string_view encoded) {
  return IsGreyPnm(encoded) || absl::StartsWith(encoded, "P6");
}

absl::StatusOr<ImageSize> SizeOfPnm(absl::string_view encoded, int64_t max_pixels) {
  TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, max_pixels));
  return pnm.size;
}

absl::StatusOr<ImageView> DecodePnm(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, max_pixels));
  const size_t pixels = static_cast<size_t>(pnm.size.width) * static_cast<size_t>(pnm.size.height);
  if (memory.size() < pixels * kBytesPerPixel) memory.resize(pixels * kBytesPerPixel);
  const auto* from = reinterpret_cast<const uint8_t*>(pnm.samples.data());
  const size_t step = static_cast<size_t>(pnm.channels), next = step == 3 ? 1 : 0;
  for (uint8_t* to = memory.data(); to != memory.data() + pixels * kBytesPerPixel;
       to += kBytesPerPixel, from += step) {
    for (size_t c = 0; c < 3; ++c) to[c] = from[c * next];
  }
  return ImageView{memory.data(), pnm.size.width, pnm.size.height};
}

}  // namespace

extern const ImageCodec kPnmCodec;
const ImageCodec kPnmCodec = {
    "PNM", {"ppm", "pgm"}, IsPnm, WholeReader<SizeOfPnm, DecodePnm>, IsGreyPnm};

}  // namespace tutti::data
