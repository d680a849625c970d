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

// The package, or that with "-cpu", has the version of the tags of the image.
struct Framework {
  absl::string_view image, package;
};
constexpr std::array<Framework, 2> kFrameworks = {
    {{"pytorch/pytorch:", "torch"}, {"tensorflow/tensorflow:", "tensorflow"}}};

struct Version {
  int major = 0, minor = 0, patch = 0;
};

// Of "1.13.1-cuda11.6" or "2.12.0"; nothing without a major and a minor.
std::optional<Version> VersionOf(absl::string_view text) {
  text = text.substr(0, text.find_first_not_of("0123456789."));
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.', absl::SkipEmpty());
  Version version;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.major) ||
      !absl::SimpleAtoi(parts[1], &version.minor)) {
    return std::nullopt;
  }
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &version.patch)) return std::nullopt;
  return version;
}

// A line of the table whose first package is the framework, by == or ~=.
struct Pinned {
  const EnvironmentRule* rule;
  Version version;
  bool takes_later_patches;  // ~=

  bool Has(const Version& asked) const {
    return version.major == asked.major && version.minor == asked.minor &&
           (version.patch == asked.patch || (takes_later_patches && version.patch < asked.patch));
  }
  // Less is nearer. Of two as near the newer one: scripts of its day come after the tag's.
  std::tuple<int, bool, int> DistanceTo(const Version& asked) const {
    return {std::abs(version.minor - asked.minor), version.minor < asked.minor,
            std::abs(version.patch - asked.patch)};
  }
};

std::vector<Pinned> PinnedLines(const Framework& framework, int major,
                                const std::vector<EnvironmentRule>& environments) {
  std::vector<Pinned> lines;
  for (const EnvironmentRule& rule : environments) {
    if (!IsInBuiltInTable(rule.location) || rule.packages.empty()) continue;
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

}  // namespace

EnvironmentRule RuleOfFrameworkImage(absl::string_view image, const EnvironmentRule& matched,
                                     const std::vector<EnvironmentRule>& environments) {
  const auto* const framework =
      std::find_if(kFrameworks.begin(), kFrameworks.end(),
                   [&](const Framework& one) { return absl::StartsWith(image, one.image); });
  if (framework == kFrameworks.end() || !IsInBuiltInTable(matched.location)) return matched;
  const absl::string_view tag = image.substr(framework->image.size());
  EnvironmentRule rule = matched;
  std::vector<std::string> differences;
  if (const std::optional<Version> asked = VersionOf(tag)) {
    const auto nearest = NearestOf(PinnedLines(*framework, asked->major, environments), *asked);
    if (nearest) rule = *nearest->rule;
    if (nearest && !nearest->Has(*asked)) {
      differences.push_back(absl::StrCat(rule.packages.front(), " in place of ", asked->major, ".",
                                         asked->minor, ".", asked->patch));
    }
  }
  if (absl::StrContains(tag, "gpu") && absl::StrContains(rule.packages.front(), "-cpu")) {
    differences.push_back("without GPUs");
  }
  rule.differs = absl::StrJoin(differences, ", ");
  return rule;
}

}  // namespace tutti::spec
