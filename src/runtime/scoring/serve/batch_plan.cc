#include "runtime/scoring/serve/batch_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/deadline.h"

namespace tutti::scoring {
namespace {

constexpr size_t kLargest = 64;
constexpr int kRuns = 3;
// What a lone request takes besides its model: the image is decoded, the answer written and sent.
constexpr absl::Duration kBesideModel = absl::Milliseconds(1);

// The shortest of a few runs, behind one that warms caches of shapes.
absl::Duration TimeOf(Servable& model, size_t count, const std::vector<float>& image) {
  const std::vector<const float*> images(count, image.data());
  absl::Duration least = absl::InfiniteDuration();
  for (int run = 0; run <= kRuns; ++run) {
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
  return absl::StrFormat("batches up to %d images (%.1f ms alone, %.1f ms together)", limit, alone,
                         1000 * image_seconds() * static_cast<double>(limit));
}

BatchPlan MeasureBatches(Servable& model, absl::Duration max_latency) {
  const std::vector<float> image(model.values());
  BatchPlan plan;
  plan.times.emplace_back(1, TimeOf(model, 1, image));
  const absl::Duration alone = plan.times.front().second;
  plan.max_latency = max_latency > absl::ZeroDuration() ? max_latency : 2 * (alone + kBesideModel);
  for (size_t size = 2; size <= kLargest; size *= 2) {
    const auto [before, shorter] = plan.times.back();
    const absl::Duration longer = TimeOf(model, size, image);
    if (longer > plan.max_latency) {
      const double share = absl::FDivDuration(plan.max_latency - shorter, longer - shorter);
      plan.limit =
          before + static_cast<size_t>(std::max(0.0, share) * static_cast<double>(size - before));
      return plan;
    }
    plan.times.emplace_back(size, longer);
    plan.limit = size;
  }
  return plan;
}

}  // namespace tutti::scoring
