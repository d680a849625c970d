#include "runtime/train/report/meter.h"

#include <utility>

namespace tutti::train {

double StepParts::Sum() const {
  double sum = 0;
  for (const StepPart& part : kStepParts) sum += this->*part.seconds;
  return sum;
}

StepParts& StepParts::operator+=(const StepParts& added) {
  for (const StepPart& part : kStepParts) this->*part.seconds += added.*part.seconds;
  return *this;
}

StepParts StepParts::operator-(const StepParts& taken) const {
  StepParts result = *this;
  for (const StepPart& part : kStepParts) result.*part.seconds -= taken.*part.seconds;
  return result;
}

StepParts StepParts::operator/(double divisor) const {
  StepParts result = *this;
  for (const StepPart& part : kStepParts) result.*part.seconds /= divisor;
  return result;
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
