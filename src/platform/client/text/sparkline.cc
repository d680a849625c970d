#include "platform/client/text/sparkline.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tutti::client {
namespace {

constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr int kLevels = 8;

double MeanOf(const std::vector<double>& values, size_t first, size_t last) {
  double sum = 0;
  int count = 0;
  for (size_t i = first; i < last; ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string Sparkline(const std::vector<double>& values, int columns) {
  const size_t bars = std::min<size_t>(values.size(), std::max(columns, 0));
  std::vector<double> means;
  double top = 0;
  bool any = false;
  for (size_t i = 0; i < bars; ++i) {
    const double mean = MeanOf(values, i * values.size() / bars, (i + 1) * values.size() / bars);
    means.push_back(mean);
    if (!std::isfinite(mean)) continue;
    any = true;
    top = std::max(top, mean);
  }
  if (!any) return "";
  std::string line;
  for (const double mean : means) {
    if (!std::isfinite(mean)) {
      line += " ";
      continue;
    }
    const double part = top > 0 ? std::max(0.0, mean) / top : 0;
    line += kBars[std::min(kLevels - 1, static_cast<int>(part * kLevels))];
  }
  return line;
}

}  // namespace tutti::client
