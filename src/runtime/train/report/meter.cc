#include "runtime/train/report/meter.h"

#include <utility>

namespace tutti::train {

StepParts& StepParts::operator+=(const StepParts& other) {
  data += other.data;
  forward += other.forward;
  backward += other.backward;
  communication += other.communication;
  optimizer += other.optimizer;
  return *this;
}

StepParts StepParts::operator/(double divisor) const {
  return {data / divisor, forward / divisor, backward / divisor, communication / divisor,
          optimizer / divisor};
}

void Meter::Add(const StepParts& parts, double loss, int64_t images) {
  AddLate(loss, images);
  current_.parts += parts;
  ++current_.steps;
  total_ += parts;
  total_seconds_ += parts.Sum();
  ++total_steps_;
}

void Meter::AddLate(double loss, int64_t images) {
  current_.loss += loss * static_cast<double>(images);
  current_.images += images;
  total_images_ += images;
}

Interval Meter::Take() {
  Interval taken = std::exchange(current_, {});
  if (taken.steps == 0) return taken;
  const double seconds = taken.parts.Sum();
  if (seconds > 0) taken.images_per_second = static_cast<double>(taken.images) / seconds;
  if (taken.images > 0) taken.loss /= static_cast<double>(taken.images);
  taken.parts = taken.parts / static_cast<double>(taken.steps);
  return taken;
}

}  // namespace tutti::train
