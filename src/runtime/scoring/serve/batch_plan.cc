#include "runtime/scoring/serve/batch_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/deadline.h"

namespace tutti::scoring {
namespace {

constexpr size_t kLargest = 64;
constexpr int kFewestRuns = 3, kMostRuns = 20;
constexpr absl::Duration kEnough = absl::Milliseconds(100);
// What a lone request takes besides its model: the image is decoded, the answer written and sent.
constexpr absl::Duration kBesideModel = absl::Milliseconds(1);

// The shortest of a few runs, behind one that warms caches of shapes; of short ones more, as other
// programs may disturb some.
absl::Duration TimeOf(Servable& model, size_t count, const std::vector<float>& image) {
  const std::vector<const float*> images(count, image.data());
  absl::Duration least = absl::InfiniteDuration();
  const absl::Duration first = base::SteadyNow();
  for (int run = 0; run <= kFewestRuns || (run <= kMostRuns && base::SteadyNow() - first < kEnough);
       ++run) {
    const absl::Duration begin = base::SteadyNow();
    model.Run(images);
    if (run > 0) least = std::min(least, base::SteadyNow() - begin);
  }
  return least;
}

}  // namespace

double BatchPlan::image_seconds() const {
  // By the measured size below the limit, as larger batches cost little more.
  double seconds = absl::ToDoubleSeconds(times.front().second);
  for (const auto& [size, time] : times) {
    if (size <= limit) seconds = absl::ToDoubleSeconds(time) / static_cast<double>(size);
  }
  return seconds;
}

std::string BatchPlan::Describe() const {
  const double alone = absl::ToDoubleMilliseconds(times.front().second);
  if (limit == 1) return absl::StrFormat("one image at a time (%.1f ms)", alone);
  return absl::StrFormat("batches up to %d images in at most %.1f ms (%.1f ms alone)", limit,
                         absl::ToDoubleMilliseconds(max_latency), alone);
}

BatchPlan MeasureBatches(Servable& model, absl::Duration max_latency) {
  const std::vector<float> image(model.values());
  BatchPlan plan;
  for (size_t size = 1; size <= kLargest; size *= 2) {
    plan.times.emplace_back(size, TimeOf(model, size, image));
    // A smaller batch that took longer was disturbed.
    for (size_t i = plan.times.size() - 1; i > 0; --i) {
      plan.times[i - 1].second = std::min(plan.times[i - 1].second, plan.times[i].second);
    }
    plan.max_latency = max_latency > absl::ZeroDuration()
                           ? max_latency
                           : 2 * (plan.times.front().second + kBesideModel);
    if (plan.times.back().second > plan.max_latency) break;
    plan.limit = size;
  }
  if (const auto [size, time] = plan.times.back(); time > plan.max_latency && size > 1) {
    const auto [before, shorter] = plan.times[plan.times.size() - 2];
    const double share = absl::FDivDuration(plan.max_latency - shorter, time - shorter);
    plan.limit = before + static_cast<size_t>(std::clamp(share, 0.0, 1.0) *
                                              static_cast<double>(size - before));
    plan.times.pop_back();
  }
  return plan;
}

}  // namespace tutti::scoring
