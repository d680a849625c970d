#include "base/machine/usable_gpus.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::base {

// The kernel asks the process's device group here too, as it does when a file is opened.
bool MayOpenDevice(const std::filesystem::path& file) {
  return ::access(file.c_str(), R_OK | W_OK) == 0;
}

std::vector<int> GpuDevices(const std::filesystem::path& devices,
                            const std::function<bool(const std::filesystem::path&)>& may_open) {
  std::vector<int> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(devices, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view digits = name;
    int number = 0;
    if (absl::ConsumePrefix(&digits, "nvidia") && absl::SimpleAtoi(digits, &number) &&
        number >= 0 && digits == absl::StrCat(number) && may_open(entry.path())) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::string> UsableGpus(const std::map<std::string, std::string>& variables) {
  if (const auto given = variables.find("CUDA_VISIBLE_DEVICES"); given != variables.end()) {
    return absl::StrSplit(given->second, ',', absl::SkipEmpty());
  }
  std::vector<std::string> gpus;
  for (size_t i = 0; i < GpuDevices().size(); ++i) gpus.push_back(absl::StrCat(i));
  return gpus;
}

}  // namespace tutti::base
