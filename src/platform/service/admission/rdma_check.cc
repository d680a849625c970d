#include "platform/service/admission/rdma_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "spec/site/requirement.h"

namespace tutti::service {
namespace {

using spec::DistributionKind;

bool HasHorovod(const spec::Environment& environment) {
  return std::any_of(environment.packages.begin(), environment.packages.end(),
                     [](const spec::Requirement& package) {
                       return spec::PackageName(package.text) == spec::kHorovod;
                     });
}

bool AsksForGpus(const spec::JobSpec& job) {
  return !job.gpu_demands.empty() || !spec::GpusAskedFor(job.slurm).empty();
}

// Says what its processes talk by over TCP, and what would use RDMA; "" where that is not known.
std::string WhatTalksOverTcp(const spec::JobSpec& job) {
  switch (job.distribution.kind) {
    case DistributionKind::kPyTorch:
      if (AsksForGpus(job)) return "";  // NCCL
      return "PyTorch's gloo, which ranks without GPUs take, talks over TCP past it; nccl and "
             "Horovod, which is tutti's, use it";
    case DistributionKind::kTensorFlow:
      return "TensorFlow's own strategies talk over TCP past it; Horovod, which is tutti's, uses "
             "it";
    case DistributionKind::kRay:
      return "Ray's objects go over TCP past it";
    default:
      return "";
  }
}

}  // namespace

void WarnOfUnusedRdma(const spec::JobSpec& job, const std::vector<std::string>& ports,
                      std::vector<std::string>& warnings) {
  if (ports.empty()) return;
  for (const spec::Step& step : job.steps) WarnOfUnusedRdma(step.job, ports, warnings);
  const bool has_network = job.kind != spec::JobKind::kPipeline && job.compute != "local" &&
                           !job.compute.empty() && job.instance_count > 1;
  if (!has_network || HasHorovod(job.environment)) return;
  const std::string what = WhatTalksOverTcp(job);
  if (what.empty()) return;
  const spec::SourceLocation& place = job.instance_count_location;
  warnings.push_back(absl::StrCat(place.file.empty() ? job.file_name : place.file, ":",
                                  place.line > 0 ? place.line : job.command_line,
                                  ": RDMA is there (", absl::StrJoin(ports, ", "), "), and ",
                                  what));
}

}  // namespace tutti::service
