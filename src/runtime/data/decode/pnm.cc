#include "runtime/data/decode/pnm.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

}  // namespace tutti::data
