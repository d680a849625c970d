#include "runtime/data/annotation/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tutti::data {
namespace {

constexpr size_t kMostBoxes = 1000;  // of an image, since every one of a batch has room for as many
constexpr double kRounding = 1e-3;   // what tools that write six digits may be off, and some

absl::StatusOr<Box> ParseBox(absl::string_view line, int64_t classes) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  Box box;
  std::array<double, 4> numbers;
  bool right = words.size() == 5 && absl::SimpleAtoi(words[0], &box.label);
  for (size_t i = 0; right && i < 4; ++i) {
    right = absl::SimpleAtod(words[i + 1], &numbers[i]) && std::isfinite(numbers[i]);
  }
  if (!right) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::Utf8SafeCEscape(line.substr(0, 40)),
                     "\" is not a class, its box's centre x and y, width and height"));
  }
  if (box.label < 0 || box.label >= classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "class ", box.label, " is out of range: classes.txt names ", classes, " classes"));
  }
  const auto [x, y, width, height] = numbers;
  const auto [least, most] =
      std::minmax({x - width / 2, y - height / 2, x + width / 2, y + height / 2});
  if (!(width > 0 && height > 0 && least >= -kRounding && most <= 1 + kRounding)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the box has no area within the image (numbers are parts of its sides, 0 to 1)"));
  }
  const auto part = [](double at) { return static_cast<float>(std::clamp(at, 0.0, 1.0)); };
  return Box{box.label, part(x - width / 2), part(y - height / 2), part(x + width / 2),
             part(y + height / 2)};
}

// In parts of the output, of a place in parts of the source.
double Placed(double at, const Geometry& geometry, const Axis& axis, int first, int source,
              int output) {
  const double pixel = at * source;
  const double placed =
      geometry.resize ? (pixel - axis.begin) * axis.full / axis.extent - axis.first : pixel - first;
  return placed / output;
}

}  // namespace

absl::StatusOr<std::vector<Box>> ParseBoxes(absl::string_view text, int64_t classes) {
  std::vector<Box> boxes;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const absl::StatusOr<Box> box = ParseBox(line, classes);
    if (!box.ok()) return base::Annotate(box.status(), absl::StrCat("line ", number));
    boxes.push_back(*box);
    if (boxes.size() > kMostBoxes) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMostBoxes, " objects"));
    }
  }
  return boxes;
}

bool PlaceBox(const Box& box, const Geometry& geometry, ImageSize output, Box& placed) {
  const auto x = [&](double at) {
    const double in =
        Placed(at, geometry, geometry.x, geometry.left, geometry.source.width, output.width);
    return geometry.flip ? 1 - in : in;
  };
  const auto y = [&](double at) {
    return Placed(at, geometry, geometry.y, geometry.top, geometry.source.height, output.height);
  };
  const double left = x(geometry.flip ? box.right : box.left), top = y(box.top);
  const double right = x(geometry.flip ? box.left : box.right), bottom = y(box.bottom);
  const auto within = [](double from, double to) { return from + to >= 0 && from + to < 2; };
  if (!within(left, right) || !within(top, bottom)) return false;
  const auto part = [](double at) { return static_cast<float>(std::clamp(at, 0.0, 1.0)); };
  placed = {box.label, part(left), part(top), part(right), part(bottom)};
  return placed.right > placed.left && placed.bottom > placed.top;
}

}  // namespace tutti::data
