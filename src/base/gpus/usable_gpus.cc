#include "base/gpus/usable_gpus.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

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

std::vector<Gpu> GpusByBus(const std::filesystem::path& driver) {
  std::map<std::string, Gpu> by_bus;  // "0000:17:00.0"
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(driver, error)) {
    Gpu gpu{.device = -1};
    const std::string text = ReadFile(entry.path() / "information", 1 << 16).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::pair<absl::string_view, absl::string_view> field =
          absl::StrSplit(line, absl::MaxSplits(':', 1));
      const absl::string_view value = absl::StripAsciiWhitespace(field.second);
      if (field.first == "GPU UUID") gpu.uuid = std::string(value);
      if (field.first == "Device Minor" && !absl::SimpleAtoi(value, &gpu.device)) gpu.device = -1;
    }
    if (gpu.device >= 0) by_bus[entry.path().filename().string()] = gpu;
  }
  std::vector<Gpu> gpus;
  for (auto& [bus, gpu] : by_bus) gpus.push_back(std::move(gpu));
  return gpus;
}

std::vector<std::string> CdiNames(const std::vector<int>& devices, const std::vector<Gpu>& gpus,
                                  absl::string_view cdi) {
  std::vector<std::string> names;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (std::find(devices.begin(), devices.end(), gpus[i].device) == devices.end()) continue;
    const bool is_named = !gpus[i].uuid.empty() && absl::StrContains(cdi, gpus[i].uuid);
    names.push_back(is_named ? gpus[i].uuid : absl::StrCat(i));
  }
  if (names.size() == devices.size()) return names;
  names.clear();
  for (const int device : devices) names.push_back(absl::StrCat(device));
  return names;
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
