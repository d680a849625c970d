#include "runtime/tasks/average_precision.h"

#include <algorithm>
#include <cstdint>

#include "runtime/tasks/box_arithmetic.h"

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr int kOverlaps = 10, kNumbers = 3, kRecalls = 101;

double LeastOverlap(int i) { return 0.5 + 0.05 * i; }

// The objects of detections [n] at one least overlap: each takes, the likeliest first, the free
// object of its class that it overlaps most. `overlap` [n, m] is 0 for other classes.
std::vector<bool> Hits(const Tensor& overlap, double least) {
  const int64_t objects = overlap.size(1);
  const auto at = overlap.accessor<float, 2>();
  std::vector<bool> hits, taken(static_cast<size_t>(objects));
  for (int64_t i = 0; i < overlap.size(0); ++i) {
    int64_t best = -1;
    for (int64_t j = 0; j < objects; ++j) {
      const bool fits = !taken[static_cast<size_t>(j)] && at[i][j] >= least;
      if (fits && (best < 0 || at[i][j] > at[i][best])) best = j;
    }
    hits.push_back(best >= 0);
    if (best >= 0) taken[static_cast<size_t>(best)] = true;
  }
  return hits;
}

struct Found {
  double score;
  uint32_t hits;
};

// `found` by descending score.
double AveragePrecision(const std::vector<Found>& found, int overlap, double objects) {
  std::vector<double> precision, recall;
  double hits = 0;
  for (const Found& one : found) {
    hits += (one.hits >> overlap) & 1;
    precision.push_back(hits / static_cast<double>(precision.size() + 1));
    recall.push_back(hits / objects);
  }
  for (size_t i = precision.size(); i-- > 1;) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  double sum = 0;
  for (int i = 0; i < kRecalls; ++i) {
    const double wanted = i / (kRecalls - 1.0);
    const auto at = std::lower_bound(recall.begin(), recall.end(), wanted) - recall.begin();
    if (at < static_cast<ptrdiff_t>(precision.size())) sum += precision[static_cast<size_t>(at)];
  }
  return sum / kRecalls;
}

std::vector<Found> OfClass(std::span<const double> rows, size_t wanted) {
  std::vector<Found> found;
  for (size_t i = 0; i + kNumbers <= rows.size(); i += kNumbers) {
    if (rows[i] != static_cast<double>(wanted)) continue;
    found.push_back({rows[i + 1], static_cast<uint32_t>(rows[i + 2])});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.score > b.score; });
  return found;
}

}  // namespace

void AppendRows(const Detections& found, const Tensor& objects, std::vector<double>& rows) {
  const int64_t count = found.scores.size(0);
  const Tensor same =
      found.classes.unsqueeze(1).eq(objects.select(1, 0).to(torch::kInt64).unsqueeze(0));
  const Tensor overlap =
      (Overlaps(found.boxes, objects.narrow(1, 1, 4)) * same).to(torch::kFloat32).contiguous();
  std::vector<uint32_t> hits(static_cast<size_t>(count));
  for (int i = 0; i < kOverlaps; ++i) {
    const std::vector<bool> at = Hits(overlap, LeastOverlap(i));
    for (size_t j = 0; j < at.size(); ++j) hits[j] |= (at[j] ? 1u : 0u) << i;
  }
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(found.classes[i].item<double>());
    rows.push_back(found.scores[i].item<double>());
    rows.push_back(hits[static_cast<size_t>(i)]);
  }
}

MeanPrecision MeanAveragePrecision(std::span<const double> rows, std::span<const double> objects) {
  MeanPrecision sum;
  double classes = 0;
  for (size_t c = 0; c < objects.size(); ++c) {
    if (objects[c] == 0) continue;
    const std::vector<Found> found = OfClass(rows, c);
    for (int i = 0; i < kOverlaps; ++i) {
      const double precision = AveragePrecision(found, i, objects[c]);
      sum.mean += precision / kOverlaps;
      if (i == 0) sum.at_half += precision;
    }
    ++classes;
  }
  if (classes == 0) return {};
  return {sum.at_half / classes, sum.mean / classes};
}

}  // namespace tutti::tasks
