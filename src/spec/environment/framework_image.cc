#include "spec/environment/framework_image.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "spec/site/requirement.h"
#include "spec/site/site_defaults.h"

namespace tutti::spec {
namespace {

// The package, or that with "-cpu", has the version that follows in tags of the image, or in names.
struct Framework {
  absl::string_view before, package;
};
constexpr std::array<Framework, 2> kImages = {
    {{"pytorch/pytorch:", "torch"}, {"tensorflow/tensorflow:", "tensorflow"}}};
constexpr std::array<Framework, 5> kNames = {{{"sklearn-", "scikit-learn"},
                                              {"lightgbm-", "lightgbm"},
                                              {"acpt-pytorch-", "torch"},
                                              {"pytorch-", "torch"},
                                              {"tensorflow-", "tensorflow"}}};

struct Version {
  std::string text;  // as it is written
  int major = 0, minor = 0;
  std::optional<int> patch;  // nothing: any
};

// Parses "1.13.1-cuda11.6" or "2.12.0"; returns nothing without a major and a minor number.
std::optional<Version> VersionOf(absl::string_view text) {
  text = text.substr(0, text.find_first_not_of("0123456789."));
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.', absl::SkipEmpty());
  Version version;
  version.text = std::string(text);
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.major) ||
      !absl::SimpleAtoi(parts[1], &version.minor)) {
    return std::nullopt;
  }
  int patch = 0;
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &patch)) return std::nullopt;
  if (parts.size() > 2) version.patch = patch;
  return version;
}

// A line of the table whose first package is the framework, by == or ~=.
struct Pinned {
  const EnvironmentRule* rule;
  Version version;
  bool takes_later_patches;  // ~=

  bool Has(const Version& asked) const {
    if (version.major != asked.major || version.minor != asked.minor) return false;
    return !asked.patch || version.patch == asked.patch ||
           (takes_later_patches && version.patch < asked.patch);
  }
  // Less is nearer. If two are as near, the newer one is: scripts of its day come after the tag's.
  std::tuple<int, bool, int> DistanceTo(const Version& asked) const {
    return {std::abs(version.minor - asked.minor), version.minor < asked.minor,
            std::abs(version.patch.value_or(0) - asked.patch.value_or(0))};
  }
};

// Returns the lines of the built-in table that pin the framework to a version of `major` and whose
// names begin with `family`.
std::vector<Pinned> PinnedLines(const Framework& framework, absl::string_view family, int major,
                                const std::vector<EnvironmentRule>& environments) {
  std::vector<Pinned> lines;
  for (const EnvironmentRule& rule : environments) {
    if (!IsInBuiltInTable(rule.location) || rule.packages.empty()) continue;
    if (!absl::StartsWith(rule.pattern, family)) continue;
    const absl::string_view first = rule.packages.front();
    const std::string name = PackageName(first);
    if (name != framework.package && name != absl::StrCat(framework.package, "-cpu")) continue;
    const size_t pin = std::min(first.find("=="), first.find("~="));
    if (pin == absl::string_view::npos) continue;
    const std::optional<Version> version = VersionOf(first.substr(pin + 2));
    if (!version || version->major != major) continue;
    lines.push_back({&rule, *version, first[pin] == '~'});
  }
  return lines;
}

// Nothing if there is none, or `asked` is newer than all.
std::optional<Pinned> NearestOf(const std::vector<Pinned>& lines, const Version& asked) {
  const auto is_not_older = [&](const Pinned& line) { return line.version.minor >= asked.minor; };
  if (std::none_of(lines.begin(), lines.end(), is_not_older)) return std::nullopt;
  return *std::min_element(lines.begin(), lines.end(), [&](const Pinned& a, const Pinned& b) {
    return a.DistanceTo(asked) < b.DistanceTo(asked);
  });
}

// Puts the lines with that Python first, and among equals those with the shortest patterns, which
// match the most names. NearestOf takes the first of several that are equally near.
void PutFirst(absl::string_view python, std::vector<Pinned>& lines) {
  const auto order = [&](const Pinned& line) {
    return std::pair(line.rule->python != python, line.rule->pattern.size());
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Pinned& a, const Pinned& b) { return order(a) < order(b); });
}

// The entry of `frameworks` with which `text` begins, or nullptr.
template <size_t n>
const Framework* FrameworkOf(const std::array<Framework, n>& frameworks, absl::string_view text) {
  const auto found = std::find_if(frameworks.begin(), frameworks.end(), [&](const Framework& one) {
    return absl::StartsWith(text, one.before);
  });
  return found == frameworks.end() ? nullptr : &*found;
}

std::string InPlaceOf(const EnvironmentRule& rule, const Version& asked) {
  return absl::StrCat(rule.packages.front(), " in place of ", asked.text);
}

}  // namespace

EnvironmentRule RuleOfFrameworkImage(absl::string_view image, const EnvironmentRule& matched,
                                     const std::vector<EnvironmentRule>& environments) {
  const Framework* const framework = FrameworkOf(kImages, image);
  if (framework == nullptr || !IsInBuiltInTable(matched.location)) return matched;
  const absl::string_view tag = image.substr(framework->before.size());
  EnvironmentRule rule = matched;
  std::vector<std::string> differences;
  if (const std::optional<Version> asked = VersionOf(tag)) {
    const auto nearest = NearestOf(PinnedLines(*framework, "", asked->major, environments), *asked);
    if (nearest) rule = *nearest->rule;
    if (nearest && !nearest->Has(*asked)) differences.push_back(InPlaceOf(rule, *asked));
  }
  if (absl::StrContains(tag, "gpu") && absl::StrContains(rule.packages.front(), "-cpu")) {
    differences.push_back("without GPUs");
  }
  rule.differs = absl::StrJoin(differences, ", ");
  return rule;
}

EnvironmentRule RuleOfFrameworkName(absl::string_view name, const EnvironmentRule& matched,
                                    const std::vector<EnvironmentRule>& environments) {
  const Framework* const framework = FrameworkOf(kNames, name);
  const bool is_pinned =
      !matched.packages.empty() && absl::StrContains(matched.packages.front(), '=');
  if (framework == nullptr || is_pinned || !IsInBuiltInTable(matched.location)) return matched;
  const std::optional<Version> asked = VersionOf(name.substr(framework->before.size()));
  if (!asked) return matched;
  const std::string python =
      PythonInName(name.substr(framework->before.size() + asked->text.size()));
  const auto nearest_in = [&](absl::string_view family) {
    std::vector<Pinned> lines = PinnedLines(*framework, family, asked->major, environments);
    PutFirst(python, lines);
    return NearestOf(lines, *asked);
  };
  auto nearest = nearest_in(framework->before);
  if (!nearest) nearest = nearest_in("");
  if (!nearest) return matched;
  EnvironmentRule rule = *nearest->rule;
  std::vector<std::string> differences;
  if (!nearest->Has(*asked)) differences.push_back(InPlaceOf(rule, *asked));
  const bool has_it = python.empty() || rule.python == python;
  if (!has_it) differences.push_back(absl::StrCat("Python ", rule.python, " in place of ", python));
  const bool is_said = !python.empty() && absl::StartsWith(rule.differs, "Python");
  if (!rule.differs.empty() && !is_said) differences.push_back(rule.differs);
  rule.differs = absl::StrJoin(differences, ", ");
  return rule;
}

}  // namespace tutti::spec
