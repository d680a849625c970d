#include "spec/command/container_options.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

// An option that neither names the container nor changes how it is started, watched and ended.
struct PassedOn {
  absl::string_view name, letter;  // a short form, if it has one
  absl::string_view leave;         // of kContainerLeaves, which a site must give; empty: none
};
constexpr PassedOn kPassedOn[] = {{"--add-host", "", ""},
                                  {"--cap-add", "", "cap-add"},
                                  {"--cap-drop", "", ""},
                                  {"--device", "", "device"},
                                  {"--env", "-e", ""},
                                  {"--group-add", "", "group-add"},
                                  {"--mount", "", "volume"},
                                  {"--privileged", "", "privileged"},
                                  {"--security-opt", "", "security-opt"},
                                  {"--shm-size", "", ""},
                                  {"--tmpfs", "", ""},
                                  {"--ulimit", "", ""},
                                  {"--volume", "-v", "volume"}};
// These hold without the option: ranks share their node's network, memory, processes and devices,
// GPUs too.
constexpr std::array<absl::string_view, 5> kHoldsAnyway = {"--ipc=host", "--network=host",
                                                           "--net=host", "--pid=host", "--rm"};
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
    for (const PassedOn& known : kPassedOn) {
      if (!known.letter.empty() && option == known.letter) option = std::string(known.name);
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

// nullptr if it has no effect.
const PassedOn* FindPassedOn(absl::string_view option) {
  const size_t equals = option.find('=');
  const absl::string_view name = option.substr(0, equals);
  if (option.find('\0') != absl::string_view::npos) return nullptr;
  if (equals == absl::string_view::npos && !Has(kFlags, name)) return nullptr;
  const auto* found = std::find_if(std::begin(kPassedOn), std::end(kPassedOn),
                                   [&](const PassedOn& known) { return known.name == name; });
  return found == std::end(kPassedOn) ? nullptr : found;
}

// "type=tmpfs,target=/x": memory, of the container's own. What is quoted, or says its type twice,
// may be anything.
bool IsOwnMount(absl::string_view value) {
  if (absl::StrContains(value, '"')) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ',');
  const auto is_type = [](absl::string_view part) { return absl::StartsWith(part, "type"); };
  return Has(parts, absl::string_view("type=tmpfs")) &&
         std::count_if(parts.begin(), parts.end(), is_type) == 1;
}

// Returns which of kContainerLeaves the site must have given for it; "" if it reaches nothing
// outside.
absl::string_view LeaveFor(const PassedOn& known, absl::string_view option) {
  absl::string_view value = option;
  if (absl::ConsumePrefix(&value, "--mount=") && IsOwnMount(value)) return "";
  if (absl::StartsWith(option, "--device=nvidia.com/gpu=")) return "";          // there anyway
  if (absl::StartsWith(option, "--security-opt=no-new-privileges")) return "";  // takes rights
  return known.leave;
}

// Returns the number of GPUs in "--gpus=4"; 1 for an option without a number.
size_t CountOfGpus(absl::string_view option) {
  size_t count = 0;
  const bool is_number =
      absl::ConsumePrefix(&option, "--gpus=") && absl::SimpleAtoi(option, &count);
  return is_number ? count : 1;
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

bool IsInContainer(const JobSpec& spec) { return !spec.environment.image.empty(); }

void ReadShmSize(MappingReader& resources, JobSpec& spec, Diagnostics& diagnostics) {
  std::string size;
  const YamlNode::Entry* entry = resources.Text("shm_size", size);
  if (entry == nullptr) return;
  if (!IsSize(size)) {
    diagnostics.Error(entry->line, absl::StrCat("shm_size \"", size.substr(0, 80),
                                                "\" is no size: write 512m or 2g"));
  } else if (IsInContainer(spec)) {
    spec.container_options.push_back(absl::StrCat("--shm-size=", size));
  } else {
    WarnOfNoContainer(*entry, diagnostics);
  }
}

void Refuse(const std::vector<std::string>& refused, const std::set<std::string>& allowed, int line,
            Diagnostics& diagnostics) {
  diagnostics.Error(line,
                    absl::StrCat("docker_args: ", absl::StrJoin(refused, " "),
                                 refused.size() == 1 ? " reaches" : " reach",
                                 " out of the container, for which this service gives no leave: "
                                 "containers: {allow: [",
                                 absl::StrJoin(allowed, ", "), "]} in its site.yml does"));
}

void PassOn(std::vector<std::string> options, int line, const Site& site, JobSpec& spec,
            Diagnostics& diagnostics) {
  std::vector<std::string> refused, left_out;
  std::set<std::string> allowed = site.container_leave;  // and what the job needs
  for (std::string& option : options) {
    if (const PassedOn* known = FindPassedOn(option)) {
      const std::string leave(LeaveFor(*known, option));
      if (!leave.empty() && !site.container_leave.contains(leave)) {
        refused.push_back(option.substr(0, 80));
        allowed.insert(leave);
      } else {
        spec.container_options.push_back(std::move(option));
      }
    } else if (!Has(kHoldsAnyway, option) && !absl::StartsWith(option, "--gpus=")) {
      left_out.push_back(option.substr(0, 80));
    }
  }
  if (!refused.empty()) Refuse(refused, allowed, line, diagnostics);
  if (left_out.empty()) return;
  diagnostics.Warning(line, absl::StrCat("docker_args: ", absl::StrJoin(left_out, " "),
                                         " has no effect: tutti decides how a container is named, "
                                         "started, watched and ended"));
}

}  // namespace

void ReadContainerOptions(MappingReader& resources, const Site& site, JobSpec& spec,
                          Diagnostics& diagnostics) {
  ReadShmSize(resources, spec, diagnostics);
  std::vector<std::string> words;
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
                                /*is_strict=*/true,
                                CountOfGpus(option)});
  }
  if (!IsInContainer(spec)) {
    if (asks_for_more) WarnOfNoContainer(*entry, diagnostics);
    return;
  }
  PassOn(std::move(options), entry->line, site, spec, diagnostics);
}

}  // namespace tutti::spec
