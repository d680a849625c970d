// Any bytes as the #SBATCH lines of a script: an error, or a job that survives its own JSON and
// whose options each are one argument of sbatch.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "spec/file/batch_script.h"
#include "spec/file/job_file.h"
#include "spec/json/job_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view lines(reinterpret_cast<const char*>(data), size);
  const std::string text = absl::StrCat("#!/bin/bash\n#SBATCH ", lines);
  const auto result = tutti::spec::ReadJobFile(text, "job.sh", "/base", tutti::spec::BuiltInSite());
  if (!result.ok()) {
    if (!absl::StartsWith(result.status().message(), "job.sh:")) std::abort();
    return 0;
  }
  const auto back = tutti::spec::JobSpecFromJson(tutti::spec::ToJson(result->spec));
  if (!back.ok() || back->slurm != result->spec.slurm) std::abort();
  for (const std::string& option : back->slurm.shape) {
    if (!absl::StartsWith(option, "--") || absl::StrContains(option, '\n')) std::abort();
  }
  return 0;
}
