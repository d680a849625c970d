#include "base/machine/usable_gpus.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::base {

std::vector<std::string> UsableGpus(const std::map<std::string, std::string>& variables) {
  if (const auto given = variables.find("CUDA_VISIBLE_DEVICES"); given != variables.end()) {
    return absl::StrSplit(given->second, ',', absl::SkipEmpty());
  }
  std::vector<std::string> gpus;
  std::error_code error;
  while (std::filesystem::exists(absl::StrCat("/dev/nvidia", gpus.size()), error)) {
    gpus.push_back(absl::StrCat(gpus.size()));
  }
  return gpus;
}

}  // namespace tutti::base
