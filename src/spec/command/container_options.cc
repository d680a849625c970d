#include "spec/command/container_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

// What neither names the container nor changes how it is started, watched and ended; a short form
// beside its long one.
constexpr std::pair<absl::string_view, absl::string_view> kPassedOn[] = {
    {"--add-host", ""}, {"--cap-add", ""},   {"--cap-drop", ""}, {"--device", ""},
    {"--env", "-e"},    {"--group-add", ""}, {"--mount", ""},    {"--security-opt", ""},
    {"--shm-size", ""}, {"--tmpfs", ""},     {"--ulimit", ""},   {"--volume", "-v"}};
// What holds without it: ranks share their node's network, memory, processes and devices.
constexpr std::array<absl::string_view, 6> kHoldsAnyway = {
    "--ipc=host", "--network=host", "--net=host", "--pid=host", "--gpus=all", "--rm"};
// Options that take no value, so that the word after them is not theirs.
constexpr std::array<absl::string_view, 9> kFlags = {"--rm",          "--init",   "--privileged",
                                                     "--read-only",   "--detach", "-d",
                                                     "--interactive", "-i",       "--tty"};

bool IsSize(absl::string_view text) {
  if (!text.empty() && absl::StrContains("bBkKmMgG", text.back())) text.remove_suffix(1);
  return !text.empty() && text.size() < 18 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

template <class List>
bool Has(const List& list, absl::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// "-v a:b" and "--volume=a:b" are "--volume=a:b"; flags stay as they are.
std::vector<std::string> InLongForm(const std::vector<std::string>& words) {
  std::vector<std::string> options;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string option = words[i];
    for (const auto& [name, letter] : kPassedOn) {
      if (!letter.empty() && option == letter) option = std::string(name);
    }
    const bool has_value = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "-");
    if (absl::StartsWith(option, "-") && !absl::StrContains(option, '=') && has_value &&
        !Has(kFlags, option)) {
      absl::StrAppend(&option, "=", words[++i]);
    }
    options.push_back(std::move(option));
  }
  return options;
}

bool IsPassedOn(absl::string_view option) {
  const size_t equals = option.find('=');
  if (equals == absl::string_view::npos || option.find('\0') != absl::string_view::npos)
    return false;
  const absl::string_view name = option.substr(0, equals);
  return std::any_of(std::begin(kPassedOn), std::end(kPassedOn),
                     [&](const auto& known) { return known.first == name; });
}

bool AsksForGpus(absl::string_view option) {
  absl::string_view gpus = option;
  if (absl::ConsumePrefix(&gpus, "--gpus=")) return gpus != "0";
  return option == "--runtime=nvidia" || absl::StartsWith(option, "--device=nvidia.com/gpu");
}

void WarnOfNoContainer(const YamlNode::Entry& entry, Diagnostics& diagnostics) {
  diagnostics.Warning(entry.line,
                      absl::StrCat("\"", entry.key,
                                   "\" has no effect: this job's environment is no image, so that "
                                   "it shares the host's /dev/shm and has no container"));
}

}  // namespace

void ReadContainerOptions(MappingReader& resources, JobSpec& spec, Diagnostics& diagnostics) {
  const bool in_container = !spec.environment.image.empty();
  std::string size;
  if (const YamlNode::Entry* entry = resources.Text("shm_size", size)) {
    if (!IsSize(size)) {
      diagnostics.Error(entry->line, absl::StrCat("shm_size \"", size.substr(0, 80),
                                                  "\" is no size: write 512m or 2g"));
    } else if (in_container) {
      spec.container_options.push_back(absl::StrCat("--shm-size=", size));
    } else {
      WarnOfNoContainer(*entry, diagnostics);
    }
  }
  std::vector<std::string> words, left_out;
  const YamlNode::Entry* entry = resources.Texts("docker_args", words);
  if (entry == nullptr) return;
  if (entry->value->kind == YamlNode::Kind::kScalar) {
    words = absl::StrSplit(entry->value->scalar, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  }
  std::vector<std::string> options = InLongForm(words);
  bool asks_for_more = false;
  for (const std::string& option : options) {
    if (!AsksForGpus(option)) {
      asks_for_more = true;
      continue;
    }
    spec.gpu_demands.push_back({absl::StrCat(option.substr(0, 80), " (docker_args)"),
                                {diagnostics.file_name(), entry->line},
                                /*is_strict=*/true});
  }
  if (!in_container) {
    if (asks_for_more) WarnOfNoContainer(*entry, diagnostics);
    return;
  }
  for (std::string& option : options) {
    if (IsPassedOn(option)) {
      spec.container_options.push_back(std::move(option));
    } else if (!Has(kHoldsAnyway, option)) {
      left_out.push_back(option.substr(0, 80));
    }
  }
  if (left_out.empty()) return;
  diagnostics.Warning(entry->line, absl::StrCat("docker_args: ", absl::StrJoin(left_out, " "),
                                                " has no effect: tutti decides how a container is "
                                                "named, started, watched and ended"));
}

}  // namespace tutti::spec
