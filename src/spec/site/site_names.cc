#include "spec/site/site_names.h"

#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/site/site_defaults.h"

namespace tutti::spec {
namespace {

using RuleKind = EnvironmentRule::Kind;

std::string PlaceOf(const EnvironmentRule& rule) {
  if (IsInBuiltInTable(rule.location)) return std::string(kBuiltInTable);
  return std::filesystem::path(rule.location).filename().string();
}

// "Python 3.9"; "Python" for any. `name`: by which the rule was found; "" for the rule itself.
std::string PythonShown(const EnvironmentRule& rule, absl::string_view name) {
  if (name.empty() && rule.python == kNamedPython) return "the Python of its name";
  const std::string version = PythonOf(rule, name);
  return absl::StrCat("Python", version.empty() ? "" : " ", version);
}

SiteName NameOf(const EnvironmentRule& rule, absl::string_view found_by = "") {
  SiteName name{.asset = {.name = rule.pattern}, .from = PlaceOf(rule)};
  Asset& asset = name.asset;
  if (rule.kind == RuleKind::kHost) {
    asset.type = "host";
    asset.description =
        absl::StrCat("the machine as it is", rule.packages.empty() ? "" : ", with tutti's horovod");
  } else if (rule.kind == RuleKind::kImage) {
    asset.type = "image";
    asset.path = asset.description = rule.image;
  } else if (rule.kind == RuleKind::kRefused) {
    asset.type = "refused";
    asset.description = rule.reason;
  } else if (!rule.conda_file.empty()) {
    asset.type = "conda_file";
    asset.path = asset.description = rule.conda_file;
  } else {
    asset.type = "packages";
    std::vector<std::string> parts = {PythonShown(rule, found_by)};
    parts.insert(parts.end(), rule.packages.begin(), rule.packages.end());
    asset.description = absl::StrJoin(parts, ", ");
  }
  return name;
}

SiteName NameOf(const std::string& component, const std::string& path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(component, absl::MaxSplits(':', 1));
  return {.asset = {.name = parts.first,
                    .version = parts.second,
                    .type = "file",
                    .path = path,
                    .description = path},
          .from = "site.yml"};
}

}  // namespace

std::vector<SiteName> SiteNames(const Site& site, AssetKind kind) {
  std::vector<SiteName> names;
  std::set<std::string> seen;
  if (kind == AssetKind::kEnvironment) {
    for (const EnvironmentRule& rule : site.environments) {
      if (seen.insert(rule.pattern).second) names.push_back(NameOf(rule));
    }
  } else if (kind == AssetKind::kComponent) {
    for (const auto& [component, path] : site.components) {
      names.push_back(NameOf(component, path));
    }
  }
  return names;
}

std::optional<SiteName> FindSiteName(const Site& site, AssetKind kind,
                                     const AssetReference& reference) {
  if (kind == AssetKind::kEnvironment) {
    const absl::string_view name = absl::StripPrefix(reference.name, "AzureML-");
    const EnvironmentRule* rule = Site::FindRule(site.environments, name);
    if (rule == nullptr) return std::nullopt;
    return NameOf(*rule, name);
  }
  if (kind != AssetKind::kComponent) return std::nullopt;
  for (const std::string& name :
       {absl::StrCat(reference.name, ":", reference.version), reference.name}) {
    const auto found = site.components.find(name);
    if (found != site.components.end()) return NameOf(found->first, found->second);
  }
  return std::nullopt;
}

}  // namespace tutti::spec
