#include "spec/types/slurm_settings.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {

SlurmSettings Over(SlurmSettings compute, const SlurmSettings& job) {
  for (const SlurmText& text : kSlurmTexts) {
    const std::string& own = job.*text.member;
    if (!own.empty()) compute.*text.member = own == "none" ? "" : own;
  }
  if (job.cpus_per_node > 0) compute.cpus_per_node = job.cpus_per_node;
  if (job.exclusive) compute.exclusive = job.exclusive;
  compute.options.insert(compute.options.end(), job.options.begin(), job.options.end());
  compute.shape = job.shape;
  return compute;
}

std::string GpusAskedFor(const SlurmSettings& settings) {
  const auto names_gpus = [](absl::string_view gres) {
    for (const absl::string_view one : absl::StrSplit(gres, ',')) {
      if (absl::StartsWith(one, "gpu") || absl::StartsWith(one, "gres/gpu")) return true;
    }
    return false;
  };
  for (const auto* options : {&settings.options, &settings.shape}) {
    for (const std::string& option : *options) {
      absl::string_view value = option;
      const bool is_gres = absl::ConsumePrefix(&value, "--gres=") && names_gpus(value);
      if (is_gres || absl::StartsWith(option, "--gpus")) return option;
    }
  }
  return names_gpus(settings.gres) ? absl::StrCat("gres ", settings.gres) : "";
}

}  // namespace tutti::spec
