#include "runtime/comm/negotiation/coordination/tuner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::comm {
namespace {

constexpr size_t kFusions[] = {0,       256 << 10, 512 << 10, 1 << 20,  2 << 20,  4 << 20,
                               8 << 20, 16 << 20,  32 << 20,  64 << 20, 128 << 20};
constexpr int kCycleMicros[] = {0, 250, 500, 1000, 2000, 4000, 8000, 16000};
constexpr int kFusionCount = std::size(kFusions);
constexpr int kCycleCount = std::size(kCycleMicros);
constexpr int kMoves = 4;

// The last that is not greater.
template <typename T, size_t n>
int IndexOf(const T (&values)[n], T value) {
  return static_cast<int>(std::upper_bound(values + 1, values + n, value) - values) - 1;
}

}  // namespace

Tuner::Tuner(const Options& options, const Tuning& start)
    : options_(options),
      best_{IndexOf(kFusions, start.fusion_bytes),
            IndexOf(kCycleMicros, static_cast<int>(std::min<int64_t>(
                                      absl::ToInt64Microseconds(start.cycle_time), 1 << 30)))},
      current_(best_) {}

Tuning Tuner::At(Point point) {
  return {kFusions[point.fusion], absl::Microseconds(kCycleMicros[point.cycle])};
}

std::optional<Tuning> Tuner::OnProgress(uint64_t bytes, absl::Duration now) {
  if (done_) return std::nullopt;
  if (!window_start_.has_value()) {
    window_start_ = now;
    window_bytes_ = bytes;
    return std::nullopt;
  }
  const absl::Duration length = now - *window_start_;
  if (length < options_.window) return std::nullopt;
  const double rate = static_cast<double>(bytes - window_bytes_) / absl::ToDoubleSeconds(length);
  window_start_ = now;
  window_bytes_ = bytes;
  if (!std::exchange(settled_, true)) return std::nullopt;
  rates_.push_back(rate);
  if (static_cast<int>(rates_.size()) < options_.windows) return std::nullopt;
  std::nth_element(rates_.begin(), rates_.begin() + rates_.size() / 2, rates_.end());
  const double median = rates_[rates_.size() / 2];
  rates_.clear();
  return OnMeasured(median);
}

std::optional<Tuning> Tuner::OnMeasured(double rate) {
  if (current_ == best_) {
    best_rate_ = rate;
    Log(best_, rate, "best");
    return NextCandidate();
  }
  if (rate > best_rate_ * kGain) {
    Log(current_, rate, "better");
    best_ = current_;
    best_rate_ = rate;
    fruitless_ = 0;
    return NextCandidate();
  }
  Log(current_, rate, "no better");
  ++fruitless_;
  move_ = (move_ + 1) % kMoves;
  return Change(best_);
}

std::optional<Tuner::Point> Tuner::Step(int move) const {
  Point point = best_;
  (move < 2 ? point.fusion : point.cycle) += move % 2 == 0 ? 1 : -1;
  const bool inside = point.fusion >= 0 && point.fusion < kFusionCount && point.cycle >= 0 &&
                      point.cycle < kCycleCount;
  return inside ? std::optional(point) : std::nullopt;
}

std::optional<Tuning> Tuner::NextCandidate() {
  for (; fruitless_ < kMoves; ++fruitless_, move_ = (move_ + 1) % kMoves) {
    if (const auto candidate = Step(move_)) return Change(*candidate);
  }
  done_ = true;
  Log(best_, best_rate_, "kept");
  if (current_ == best_) return std::nullopt;
  return Change(best_);
}

std::optional<Tuning> Tuner::Change(Point to) {
  current_ = to;
  settled_ = false;
  return At(to);
}

void Tuner::Log(Point point, double rate, const char* what) {
  const Tuning tuning = At(point);
  absl::StrAppend(&log_, tuning.fusion_bytes, ",", absl::ToDoubleMilliseconds(tuning.cycle_time),
                  ",", static_cast<int64_t>(rate), ",", what, "\n");
}

}  // namespace tutti::comm
