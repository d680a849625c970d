#include "runtime/train/report/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::train {
namespace {

constexpr int kBarColumns = 24;

int DigitsOf(int64_t number) { return static_cast<int>(absl::StrCat(number).size()); }

}  // namespace

std::string DescribeSeconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

std::string DrawBar(double part) {
  const int filled = std::clamp(static_cast<int>(part * kBarColumns), 0, kBarColumns);
  std::string bar;
  for (int i = 0; i < kBarColumns; ++i) bar += i < filled ? "━" : i == filled ? "╸" : " ";
  return bar;
}

std::string DescribeStep(const Position& position, const Interval& interval) {
  return absl::StrFormat("epoch %*d/%d  step %*d/%d  loss %.4f  lr %.4g  %.0f images/s  %s left",
                         DigitsOf(position.epochs), position.epoch, position.epochs,
                         DigitsOf(position.steps), position.step, position.steps, interval.loss,
                         position.learning_rate, interval.images_per_second,
                         DescribeSeconds(position.seconds_left));
}

Progress::Progress(std::FILE* out, bool terminal, absl::Duration line_every,
                   const base::Clock& clock)
    : out_(out),
      terminal_(terminal),
      line_every_(line_every),
      clock_(clock),
      next_line_(clock.Now()) {}

Progress::~Progress() { ClearBar(); }

void Progress::Step(const Position& position, const Interval& interval) {
  if (out_ == nullptr) return;
  const std::string text = DescribeStep(position, interval);
  if (terminal_) {
    const double part = static_cast<double>(position.step) / static_cast<double>(position.steps);
    std::fprintf(out_, "\r\x1b[K%s %s", DrawBar(part).c_str(), text.c_str());
    bar_shown_ = true;
  } else if (clock_.Now() >= next_line_) {
    next_line_ = clock_.Now() + line_every_;
    std::fprintf(out_, "%s\n", text.c_str());
  }
  std::fflush(out_);
}

void Progress::Line(absl::string_view text) {
  if (out_ == nullptr) return;
  ClearBar();
  std::fprintf(out_, "%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(out_);
}

void Progress::ClearBar() {
  if (!bar_shown_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  bar_shown_ = false;
}

}  // namespace tutti::train
