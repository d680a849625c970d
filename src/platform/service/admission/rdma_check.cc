#include "platform/service/admission/rdma_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "spec/site/requirement.h"

namespace tutti::service {
namespace {

bool HasHorovod(const spec::Environment& environment) {
  return std::any_of(environment.packages.begin(), environment.packages.end(),
                     [](const spec::Requirement& package) {
                       return spec::PackageName(package.text) == spec::kHorovod;
                     });
}

bool AsksForGpus(const spec::JobSpec& job) {
  return !job.gpu_demands.empty() || !spec::GpusAskedFor(job.slurm).empty();
}

}  // namespace

void WarnOfUnusedRdma(const spec::JobSpec& job, const std::vector<std::string>& ports,
                      std::vector<std::string>& warnings) {
  if (ports.empty()) return;
  for (const spec::Step& step : job.steps) WarnOfUnusedRdma(step.job, ports, warnings);
  const bool has_network = job.kind != spec::JobKind::kPipeline && job.compute != "local" &&
                           !job.compute.empty() && job.instance_count > 1;
  if (!has_network || HasHorovod(job.environment)) return;
  const auto talks = spec::DriverOf(job.distribution).talks_over_tcp;
  const absl::string_view what = talks == nullptr ? "" : talks(AsksForGpus(job));
  if (what.empty()) return;
  const spec::SourceLocation& place = job.instance_count_location;
  warnings.push_back(absl::StrCat(place.file.empty() ? job.file_name : place.file, ":",
                                  place.line > 0 ? place.line : job.command_line,
                                  ": RDMA is there (", absl::StrJoin(ports, ", "), "), and ",
                                  what));
}

}  // namespace tutti::service
