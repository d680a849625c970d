#include "platform/service/admission/gpu_check.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::service {
namespace {

constexpr absl::string_view kNone = ", of which this machine has none";

bool IsNamedForGpus(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const absl::string_view word : {"cuda", "-gpu", "_gpu", "nvcr.io/nvidia/", "cudnn"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

// The name of the environment or of its image, if that says it; or "".
std::string NamedForGpus(const spec::Environment& environment) {
  const std::string& image = environment.image.reference;
  if (IsNamedForGpus(image)) return absl::StrCat("image ", image);
  return IsNamedForGpus(environment.name) ? absl::StrCat("environment ", environment.name) : "";
}

std::string Asks(const spec::GpuDemand& demand, size_t gpus) {
  return absl::StrCat(
      demand.location.file, ":", demand.location.line, ": ", demand.what, " asks for ",
      gpus == 0 ? absl::StrCat("GPUs", kNone)
                : absl::StrCat(demand.count, " GPUs on a node, and this machine has ", gpus));
}

void LookAt(const spec::JobSpec& job, const std::function<size_t()>& count,
            std::vector<std::string>& faults, std::vector<std::string>& warnings) {
  for (const spec::Step& step : job.steps) LookAt(step.job, count, faults, warnings);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  const std::string named = NamedForGpus(job.environment);
  if (job.gpu_demands.empty() && named.empty()) return;
  const size_t gpus = count();
  for (const spec::GpuDemand& demand : job.gpu_demands) {
    if (demand.count <= gpus) continue;
    const std::string text = Asks(demand, gpus);
    if (demand.is_strict) {
      faults.push_back(absl::StrCat(text, gpus == 0 ? ": take it out" : ": ask for fewer",
                                    ", or name a compute whose nodes have them"));
    } else {
      warnings.push_back(absl::StrCat(text, ": a program that needs one will fail"));
    }
  }
  if (gpus > 0 || named.empty()) return;
  const std::string& of_image = job.environment.image.location;
  const std::string& location = of_image.empty() ? job.environment.place : of_image;
  warnings.push_back(absl::StrCat(location.empty() ? job.file_name : location, ": ", named,
                                  " is made for GPUs", kNone,
                                  ": a program that needs one will fail"));
}

}  // namespace

absl::Status CheckGpus(const spec::JobSpec& job, const std::function<size_t()>& gpus,
                       std::vector<std::string>& warnings) {
  std::vector<std::string> faults;
  LookAt(job, gpus, faults, warnings);
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

}  // namespace tutti::service
