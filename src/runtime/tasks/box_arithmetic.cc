#include "runtime/tasks/box_arithmetic.h"

#include <cmath>
#include <vector>

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr double kShift = 10, kGrowth = 5;
constexpr double kMostGrowth = 62.5;  // more is no box, and may be none of floating point's

Tensor Part(const Tensor& boxes, int64_t first) { return boxes.narrow(-1, first, 2); }

Tensor Areas(const Tensor& corners) {
  return (Part(corners, 2) - Part(corners, 0)).clamp_min(0).prod(-1);
}

}  // namespace

Tensor ToCorners(const Tensor& centred) {
  const Tensor half = Part(centred, 2) / 2;
  return torch::cat({Part(centred, 0) - half, Part(centred, 0) + half}, -1);
}

Tensor Overlaps(const Tensor& a, const Tensor& b) {
  const Tensor x = a.unsqueeze(1), y = b.unsqueeze(0);
  const Tensor from = torch::maximum(Part(x, 0), Part(y, 0));
  const Tensor to = torch::minimum(Part(x, 2), Part(y, 2));
  const Tensor both = (to - from).clamp_min(0).prod(-1);
  return both / (Areas(x) + Areas(y) - both).clamp_min(1e-12);
}

Tensor Moves(const Tensor& defaults, const Tensor& corners) {
  const Tensor sides = Part(corners, 2) - Part(corners, 0);
  const Tensor centre = Part(corners, 0) + sides / 2;
  return torch::cat({kShift * (centre - Part(defaults, 0)) / Part(defaults, 2),
                     kGrowth * torch::log(sides / Part(defaults, 2))},
                    -1);
}

Tensor Moved(const Tensor& defaults, const Tensor& moves) {
  const Tensor growth = (Part(moves, 2) / kGrowth).clamp_max(std::log(kMostGrowth));
  const Tensor sides = torch::exp(growth) * Part(defaults, 2);
  const Tensor centre = Part(moves, 0) / kShift * Part(defaults, 2) + Part(defaults, 0);
  return ToCorners(torch::cat({centre, sides}, -1));
}

Tensor Match(const Tensor& defaults, const Tensor& objects, double least) {
  if (objects.size(0) == 0) return torch::full({defaults.size(0)}, -1, torch::kInt64);
  const Tensor overlaps = Overlaps(objects, ToCorners(defaults));
  const auto [best, object] = overlaps.max(0);
  const Tensor matches = object.masked_fill(best.lt(least), -1);
  matches.index_put_({std::get<1>(overlaps.max(1))}, torch::arange(objects.size(0)));
  return matches;
}

Tensor Distinct(const Tensor& corners, double most) {
  const int64_t count = corners.size(0);
  const Tensor overlapping = Overlaps(corners, corners).gt(most).contiguous();
  const bool* const overlaps = overlapping.const_data_ptr<bool>();
  std::vector<char> gone(static_cast<size_t>(count));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < count; ++i) {
    if (gone[static_cast<size_t>(i)]) continue;
    kept.push_back(i);
    for (int64_t j = i + 1; j < count; ++j) {
      gone[static_cast<size_t>(j)] |= overlaps[i * count + j];
    }
  }
  return torch::tensor(kept, torch::kInt64);
}

}  // namespace tutti::tasks
