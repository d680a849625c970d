// The list of distributions. It stands alone, so that a program with a list of its own links that.
#include "spec/types/job_distribution.h"

namespace tutti::spec {

extern const DistributionDriver kMpi, kPyTorch, kTensorFlow, kRay, kNoDistribution;

std::span<const DistributionDriver* const> Distributions() {
  static constexpr const DistributionDriver* kAll[] = {&kMpi, &kPyTorch, &kTensorFlow, &kRay,
                                                       &kNoDistribution};
  return kAll;
}

}  // namespace tutti::spec
