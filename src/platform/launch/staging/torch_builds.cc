#include "platform/launch/staging/torch_builds.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "spec/site/requirement.h"

namespace tutti::launch {
namespace {

// Packages that need PyTorch and do not have it in their names.
constexpr std::array<absl::string_view, 16> kNeedTorch = {
    "accelerate", "bitsandbytes", "deepspeed", "easyocr",    "fastai", "flair",
    "kornia",     "monai",        "peft",      "pyro-ppl",   "trl",    "sentence-transformers",
    "stanza",     "timm",         "vllm",      "ultralytics"};

// Also "transformers[torch]", "pytorch-lightning".
bool BringsTorch(const spec::Requirement& package) {
  const std::string text = absl::AsciiStrToLower(package.text);
  if (absl::StrContains(text, "torch") || absl::StrContains(text, "lightning")) return true;
  return std::find(kNeedTorch.begin(), kNeedTorch.end(), spec::PackageName(text)) !=
         kNeedTorch.end();
}

// Whether it says which build it is: "torch==2.1.0+cu118", "torch @ https://…".
bool NamesABuild(const spec::Requirement& package) {
  return absl::StartsWith(spec::PackageName(package.text), "torch") &&
         (absl::StrContains(package.text, '+') || absl::StrContains(package.text, "://"));
}

// Whether an address is of PyTorch's index, or of a copy of it.
bool IsOfTorchIndex(absl::string_view address) {
  return absl::StrContains(address, "pytorch") || absl::StrContains(address, "/whl/cpu") ||
         absl::StrContains(address, "/whl/cu");
}

std::string TorchVariable(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// Whether PyTorch's index is not to be asked, or is asked in any case.
bool SaysWhereToLook(const spec::Environment& environment,
                     const std::map<std::string, std::string>& variables) {
  std::vector<std::string> said = environment.options;
  for (const char* name : {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"}) {
    said.push_back(TorchVariable(variables, name));
  }
  for (const char* name : {"UV_NO_INDEX", "PIP_NO_INDEX", "UV_OFFLINE"}) {
    if (!TorchVariable(variables, name).empty()) return true;
  }
  return std::any_of(said.begin(), said.end(), [](const std::string& one) {
    return one == "--no-index" || IsOfTorchIndex(one);
  });
}

}  // namespace

spec::Environment WithTorchBuilds(spec::Environment environment,
                                  const std::map<std::string, std::string>& variables,
                                  bool node_has_gpus) {
  const std::string asked = std::exchange(environment.torch, "");
  const auto& packages = environment.packages;
  if (!std::any_of(packages.begin(), packages.end(), BringsTorch) ||
      std::any_of(packages.begin(), packages.end(), NamesABuild) ||
      SaysWhereToLook(environment, variables)) {
    return environment;
  }
  const std::string set = TorchVariable(variables, "UV_TORCH_BACKEND");
  if (!set.empty() && (set != "auto" || node_has_gpus)) {
    environment.torch = set;
  } else if (asked == "cpu" || (asked.empty() && !node_has_gpus)) {
    environment.torch = "cpu";
  }
  return environment;
}

bool PinsTorch(const spec::Environment& environment) {
  const auto& packages = environment.packages;
  return std::any_of(packages.begin(), packages.end(), [](const spec::Requirement& package) {
    return spec::PackageName(package.text) == "torch" && !spec::PinnedVersion(package.text).empty();
  });
}

}  // namespace tutti::launch
