#include "platform/launch/staging/container_gpus.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::launch {
namespace {

constexpr absl::string_view kDevice = "--device=nvidia.com/gpu=";

std::vector<int> Numbers(const std::vector<std::string>& gpus) {
  std::vector<int> numbers;
  for (const std::string& gpu : gpus) {
    int number = 0;
    if (absl::SimpleAtoi(gpu, &number)) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Numbers them as CUDA does where it sees these alone: in the order of its numbers on the node.
std::vector<std::string> NumberedAnew(std::vector<std::string> gpus) {
  const std::vector<int> numbers = Numbers(gpus);
  for (std::string& gpu : gpus) {
    int number = 0;
    if (!absl::SimpleAtoi(gpu, &number)) continue;
    gpu = absl::StrCat(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
  }
  return gpus;
}

// Returns the job's GPUs that CUDA knows.
std::vector<std::string> KnownGpus(const NodeFacts& facts) {
  std::vector<std::string> known;
  for (const std::string& gpu : facts.gpus) {
    size_t number = 0;
    const bool is_number = facts.gpu_names && absl::SimpleAtoi(gpu, &number);
    if (!is_number || number < facts.gpu_names->size()) known.push_back(gpu);
  }
  return known;
}

// Names them as podman's CDI file does.
std::vector<std::string> NodesNames(const NodeFacts& facts) {
  std::vector<std::string> names = KnownGpus(facts);
  for (std::string& name : names) {
    size_t number = 0;
    if (facts.gpu_names && absl::SimpleAtoi(name, &number)) name = (*facts.gpu_names)[number];
  }
  return names;
}

}  // namespace

std::vector<std::string> GpuOptions(const NodeFacts& facts) {
  std::vector<std::string> options;
  if (!facts.has_cdi) return options;
  for (const std::string& gpu : NodesNames(facts)) options.push_back(absl::StrCat(kDevice, gpu));
  return options;
}

bool NamesGpus(absl::string_view option) { return absl::StartsWith(option, kDevice); }

void SetGpuVariables(const spec::LaunchPlan& plan, const NodeFacts& facts, Variables& variables) {
  if (!facts.has_cdi) return;
  // Or NVIDIA's own hook adds those that the image asks for, which is all.
  variables["NVIDIA_VISIBLE_DEVICES"] = "void";
  const bool is_jobs_own = plan.environment_variables.contains("CUDA_VISIBLE_DEVICES");
  if (facts.gpus.empty() || (is_jobs_own && !plan.has_part())) return;
  // Such a container has all devices of the node, whatever it is given.
  const auto& options = plan.container_options;
  const bool sees_all = std::find(options.begin(), options.end(), "--privileged") != options.end();
  variables["CUDA_VISIBLE_DEVICES"] =
      absl::StrJoin(sees_all ? NodesNames(facts) : NumberedAnew(KnownGpus(facts)), ",");
}

}  // namespace tutti::launch
