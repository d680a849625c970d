#include "runtime/bench/step_model.h"

#include <algorithm>
#include <numeric>

namespace tutti::bench {

Link FitLink(std::span<const AllReduceTime> measured) {
  if (measured.size() < 2) return {};
  // Least squares of (alpha + beta b - t) / t.
  double ww = 0, wb = 0, bb = 0, wt = 0, bt = 0;
  for (const auto& [bytes, seconds] : measured) {
    const double w = 1 / seconds, b = bytes / seconds;
    ww += w * w, wb += w * b, bb += b * b, wt += w, bt += b;
  }
  const double determinant = ww * bb - wb * wb;
  if (determinant <= 0) return {wt / ww, 0};
  const Link link{(wt * bb - bt * wb) / determinant, (ww * bt - wb * wt) / determinant};
  if (link.alpha < 0) return {0, bt / bb};
  if (link.beta < 0) return {wt / ww, 0};
  return link;
}

Prediction PredictStep(const Work& work, const Link& link, double slowdown) {
  return PredictStepOver([&](double bytes) { return link.alpha + bytes * link.beta; }, work,
                         slowdown);
}

Prediction PredictStepOver(const std::function<double(double bytes)>& all_reduce, const Work& work,
                           double slowdown) {
  const double backward = work.alone.backward * slowdown;
  const double whole =
      std::max(1.0, std::accumulate(work.bucket_bytes.begin(), work.bucket_bytes.end(), 0.0));
  Prediction prediction;
  double done = 0, complete = 0;  // when the link is free; bytes whose gradients are there
  for (const double bytes : work.bucket_bytes) {
    complete += bytes;
    const double seconds = all_reduce(bytes);
    done = std::max(done, backward * complete / whole) + seconds;
    prediction.communication += seconds;
  }
  prediction.compute = work.alone.Sum() * slowdown;
  prediction.exposed = std::max(0.0, done - backward);
  return prediction;
}

double Slowdown(int ranks, int threads, int cores) {
  return std::max(1.0, static_cast<double>(ranks * threads) / std::max(cores, 1));
}

}  // namespace tutti::bench
