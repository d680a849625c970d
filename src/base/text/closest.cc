#include "base/text/closest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tutti::base {
namespace {

size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Closest(absl::string_view word, std::span<const absl::string_view> candidates) {
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const absl::string_view candidate : candidates) {
    if (const size_t distance = Distance(word, candidate); distance < best_distance) {
      best_distance = distance;
      best = std::string(candidate);
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view word, std::span<const absl::string_view> candidates) {
  const std::string closest = Closest(word, candidates);
  return closest.empty() ? "" : absl::StrCat(" (did you mean \"", closest, "\"?)");
}

}  // namespace tutti::base
