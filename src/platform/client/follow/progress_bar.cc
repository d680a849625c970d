#include "platform/client/follow/progress_bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

std::string Of(const char* what, std::optional<int64_t> at, std::optional<int64_t> all) {
  if (!at) return "";
  return all ? absl::StrCat(what, " ", *at, "/", *all) : absl::StrCat(what, " ", *at);
}

std::string Figures(const Metric& m, absl::Duration since) {
  std::vector<std::string> parts;
  std::string first = Of("step", m.step, m.steps);
  if (m.loss)
    absl::StrAppend(&first, first.empty() ? "" : " ", absl::StrFormat("loss %.3g", *m.loss));
  if (!first.empty()) parts.push_back(first);
  if (m.images_per_second) {
    parts.push_back(absl::StrCat(WithCommas(std::llround(*m.images_per_second)), " images/s"));
  }
  if (m.seconds_left) {
    parts.push_back(absl::StrCat(Clock(absl::Seconds(*m.seconds_left) - since), " left"));
  }
  return absl::StrJoin(parts, " · ");
}

}  // namespace

std::string Bar(double fraction, int width) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const int eighths = static_cast<int>(std::floor(clamped * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[static_cast<size_t>(eighths % 8)];
  return PadRight(bar, width);
}

std::string ProgressLine(const Metric& m, absl::Duration since, int width) {
  const std::string epoch = Of("epoch", m.epoch, m.epochs);
  const std::string figures = Figures(m, since);
  std::vector<std::string> parts;
  if (!epoch.empty()) parts.push_back(epoch);
  const int room = width - Columns(epoch) - Columns(figures) - 4;  // two edges, two spaces
  if (m.step && m.steps && *m.steps > 0 && room >= 4) {
    const double fraction = static_cast<double>(*m.step) / static_cast<double>(*m.steps);
    parts.push_back(absl::StrCat("▕", Bar(fraction, std::min(room, 30)), "▏"));
  }
  if (!figures.empty()) parts.push_back(figures);
  return Shorten(absl::StrJoin(parts, " "), width);
}

std::string PlainProgressLine(const Metric& m) {
  const std::string epoch = Of("epoch", m.epoch, m.epochs);
  return absl::StrCat(epoch, epoch.empty() ? "" : " ", Figures(m, absl::ZeroDuration()));
}

}  // namespace tutti::client
