#include "spec/site/site.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/data/local_path.h"
#include "spec/site/requirement.h"
#include "spec/site/retention_section.h"
#include "spec/site/site_defaults.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/node_folder.h"
#include "spec/types/process_variable.h"

namespace tutti::spec {
namespace fs = std::filesystem;
namespace {

constexpr char kSiteFile[] = "site.yml";
constexpr char kDataMapFile[] = "data-map.yml";
constexpr uint64_t kLargestSiteFile = 1 << 20;

// "*" is any text, also none. Linear in practice: the last star takes more when what follows does
// not fit.
bool Matches(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0, star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Reads one site.yml over what `site` holds.
class SiteReader {
 public:
  SiteReader(absl::string_view file_name, const fs::path& folder, Site& site)
      : file_name_(file_name), folder_(folder), diagnostics_(file_name), site_(site) {}

  absl::Status Read(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    MappingReader reader(root, "a site file", diagnostics_);
    ReadRules(reader, "environments", site_.environments);
    ReadRules(reader, "images", site_.images);
    std::map<std::string, std::string> packages, computes;
    reader.TextMap("conda_packages", packages);
    for (const auto& [name, value] : packages) {
      site_.conda_packages[absl::AsciiStrToLower(name)] = value;
    }
    ReadComputes(reader);
    ReadComponents(reader);
    ReadContainers(reader);
    if (const YamlNode::Entry* entry = reader.Take("retention")) {
      ReadRetention(*entry, diagnostics_, site_.retention);
    }
    ReadHealthCheck(reader);
    ReadSecretKeyFile(reader);
    ReadKeepLogs(reader);
    if (const YamlNode::Entry* entry = reader.Take("data")) ReadData(*entry);
    reader.Finish();
    return diagnostics_.status();
  }

 private:
  void ReadRules(MappingReader& reader, absl::string_view key,
                 std::vector<EnvironmentRule>& rules) {
    const YamlNode::Entry* section = reader.Take(key);
    if (section == nullptr) return;
    MappingReader check(*section->value, key, diagnostics_);
    std::vector<EnvironmentRule> read;
    for (const YamlNode::Entry& entry : section->value->entries)
      read.push_back(ReadRule(entry, key == "images"));
    rules.insert(rules.begin(), read.begin(), read.end());  // before those of earlier files
  }

  EnvironmentRule ReadRule(const YamlNode::Entry& entry, bool of_images) {
    EnvironmentRule rule;
    rule.pattern = absl::AsciiStrToLower(entry.key);
    rule.location = absl::StrCat(file_name_, ":", entry.line);
    if (entry.value->kind == YamlNode::Kind::kScalar && entry.value->scalar == "host") {
      rule.kind = EnvironmentRule::Kind::kHost;
      return rule;
    }
    if (of_images && entry.value->kind == YamlNode::Kind::kScalar &&
        entry.value->scalar == "container") {
      rule.kind = EnvironmentRule::Kind::kImage;
      return rule;
    }
    MappingReader reader(*entry.value, absl::StrCat("\"", entry.key, "\""), diagnostics_);
    reader.Text("python", rule.python);
    reader.Texts("packages", rule.packages);
    ReadVariables(reader, rule.variables);
    reader.Text("differs", rule.differs);
    if (reader.Text("image", rule.image) != nullptr) rule.kind = EnvironmentRule::Kind::kImage;
    if (reader.Text("refused", rule.reason) != nullptr) rule.kind = EnvironmentRule::Kind::kRefused;
    std::string file;
    if (const YamlNode::Entry* at = reader.Text("conda_file", file)) {
      rule.conda_file = PathAt(at->line, file);
    }
    bool is_host = false;
    const YamlNode::Entry* const host = reader.Flag("host", is_host);
    if (is_host) MakeHost(rule, host->line);
    reader.Finish();
    return rule;
  }

  // Nothing is installed in the machine's own Python; tutti's package goes into a folder of the
  // job.
  void MakeHost(EnvironmentRule& rule, int line) {
    const bool has_others =
        std::any_of(rule.packages.begin(), rule.packages.end(),
                    [](const std::string& package) { return package != kHorovod; });
    if (has_others || !rule.conda_file.empty() || rule.kind != EnvironmentRule::Kind::kPackages) {
      diagnostics_.Error(line,
                         "host: true leaves the machine's Python as it is: of packages "
                         "horovod alone may stand beside it");
    }
    rule.kind = EnvironmentRule::Kind::kHost;
  }

  void ReadVariables(MappingReader& reader, std::map<std::string, std::string>& variables) {
    reader.TextMap("variables", variables);
    const YamlNode::Entry* const section = reader.Take("variables");
    if (section == nullptr) return;
    for (const YamlNode::Entry& entry : section->value->entries) {
      const std::string why = WhyTooLong(entry.key, entry.value->scalar);
      if (why.empty()) continue;
      diagnostics_.Error(entry.line,
                         absl::StrCat("variables: ", entry.key.substr(0, 80), " ", why));
    }
  }

  void ReadComputes(MappingReader& reader) {
    const YamlNode::Entry* section = reader.Take("computes");
    if (section == nullptr) return;
    MappingReader computes(*section->value, "computes", diagnostics_);
    static constexpr std::array<absl::string_view, 1> kComputes = {"local"};
    for (const YamlNode::Entry& entry : section->value->entries) {
      const std::string name = absl::AsciiStrToLower(entry.key);
      if (entry.value->kind != YamlNode::Kind::kMapping) {
        computes.Choice(entry.key, kComputes, site_.computes[name]);
      } else if (name == "local" || name == "serverless") {
        diagnostics_.Error(entry.line, absl::StrCat("\"", name, "\" means this machine's nodes"));
      } else {
        site_.computes[name] = name;
        SlurmCompute compute = ReadSlurmCompute(*entry.value, name, folder_.string(), diagnostics_);
        CheckFolderIsItsOwn(name, compute, entry.line);
        site_.slurm_computes[name] = std::move(compute);
      }
    }
  }

  // Each takes what lies in its folder for its own.
  void CheckFolderIsItsOwn(const std::string& name, const SlurmCompute& compute, int line) {
    if (compute.folder.empty() || NodeFolder(compute.folder)) return;
    for (const auto& [other, its] : site_.slurm_computes) {
      if (other == name || its.folder != compute.folder) continue;
      diagnostics_.Error(line, absl::StrCat("compute \"", name, "\" has the folder of \"", other,
                                            "\": give each one of its own"));
    }
  }

  void ReadComponents(MappingReader& reader) {
    std::map<std::string, std::string> components;
    const YamlNode::Entry* section = reader.Take("components");
    reader.TextMap("components", components);
    for (const auto& [name, path] : components) {
      site_.components[name] = PathAt(section->line, path);
    }
  }

  void ReadContainers(MappingReader& reader) {
    const YamlNode::Entry* section = reader.Take("containers");
    if (section == nullptr) return;
    MappingReader containers(*section->value, "containers", diagnostics_);
    std::vector<std::string> allowed;
    if (const YamlNode::Entry* entry = containers.Texts("allow", allowed)) {
      site_.container_leave.clear();
      for (const std::string& name : allowed) Allow(name, entry->line);
    }
    containers.Finish();
  }

  void Allow(const std::string& name, int line) {
    if (std::find(kContainerLeaves.begin(), kContainerLeaves.end(), name) !=
        kContainerLeaves.end()) {
      site_.container_leave.insert(name);
    } else {
      diagnostics_.Error(line,
                         absl::StrCat("containers.allow: \"", name.substr(0, 80), "\" is none of ",
                                      absl::StrJoin(kContainerLeaves, ", ")));
    }
  }

  // A command alone, or a mapping.
  void ReadHealthCheck(MappingReader& reader) {
    const YamlNode::Entry* section = reader.Take("health_check");
    if (section == nullptr) return;
    HealthCheck& check = site_.health_check;
    if (section->value->kind == YamlNode::Kind::kScalar) {
      check.command = section->value->scalar;
      return;
    }
    MappingReader mapping(*section->value, "health_check", diagnostics_);
    mapping.Text("command", check.command);
    mapping.Count("timeout", 3600, check.timeout_seconds);
    mapping.Count("interval", 24 * 3600, check.interval_seconds);
    if (const YamlNode::Entry* entry = mapping.Texts("links", check.links)) {
      for (const std::string& link : check.links) CheckLinkName(link, entry->line);
    }
    mapping.Finish();
  }

  void ReadSecretKeyFile(MappingReader& reader) {
    std::string path;
    const YamlNode::Entry* entry = reader.Text("secret_key_file", path);
    if (entry == nullptr) return;
    site_.secret_key_file = PathAt(entry->line, path);
  }

  // Which datastores there are is asked when a job is submitted: they come and go without this
  // file.
  void ReadKeepLogs(MappingReader& reader) {
    const YamlNode::Entry* const entry = reader.Text("keep_logs", site_.keep_logs);
    if (entry == nullptr) return;
    site_.keep_logs_location = absl::StrCat(file_name_, ":", entry->line);
  }

  // It becomes a part of a path.
  void CheckLinkName(const std::string& link, int line) {
    if (!link.empty() && link.front() != '.' && link.find('/') == std::string::npos) return;
    diagnostics_.Error(line, absl::StrCat("health_check.links: \"", link.substr(0, 80),
                                          "\" names no link: write eth0, mlx5_0 or mlx5_0:1"));
  }

  void ReadData(const YamlNode::Entry& section) {
    MappingReader check(*section.value, "data", diagnostics_);
    for (const YamlNode::Entry& entry : section.value->entries) {
      if (entry.value->kind != YamlNode::Kind::kScalar) {
        diagnostics_.Error(entry.line, absl::StrCat("\"", entry.key, "\" must be a path"));
        continue;
      }
      const absl::Status added = site_.data.Add(entry.key, PathAt(entry.line, entry.value->scalar));
      if (!added.ok()) diagnostics_.Error(entry.line, added.message());
    }
  }

  std::string PathAt(int line, absl::string_view path) {
    const auto local = LocalPath(path, folder_);
    if (local.ok()) return *local;
    diagnostics_.Error(line, local.status().message());
    return "/";
  }

  const std::string file_name_;
  const fs::path folder_;
  Diagnostics diagnostics_;
  Site& site_;
};

// "" if there is none, or nothing but comments in it.
absl::StatusOr<std::string> TextOf(const fs::path& file) {
  auto text = base::ReadFile(file, kLargestSiteFile);
  if (absl::IsNotFound(text.status())) return "";
  return text;
}

std::string InQuotes(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

std::string PythonOf(const EnvironmentRule& rule, absl::string_view name) {
  return rule.python == kNamedPython ? PythonInName(name) : rule.python;
}

std::set<std::string> AnyContainerLeave() {
  return {kContainerLeaves.begin(), kContainerLeaves.end()};
}

absl::Status ReadSiteText(absl::string_view text, absl::string_view file_name,
                          const fs::path& folder, Site& site) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  return SiteReader(file_name, folder, site).Read(*root);
}

const EnvironmentRule* Site::FindRule(const std::vector<EnvironmentRule>& rules,
                                      absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const EnvironmentRule& rule : rules) {
    if (Matches(rule.pattern, lower)) return &rule;
  }
  return nullptr;
}

const Site& BuiltInSite() {
  static const Site* const site = [] {
    auto* built_in = new Site;
    for (const auto& [text, name] : {std::pair(kSiteDefaults, kBuiltInTable),
                                     std::pair(kCuratedEnvironments, kCuratedTable)}) {
      const absl::Status status = ReadSiteText(text, name, "/", *built_in);
      if (!status.ok()) std::abort();  // a test reads it
    }
    return built_in;
  }();
  return *site;
}

absl::StatusOr<Site> ReadSite(const fs::path& home, std::set<std::string> container_leave) {
  Site site = BuiltInSite();
  site.jobs = (home / "jobs").string();
  site.container_leave = std::move(container_leave);
  TUTTI_ASSIGN_OR_RETURN(const std::string text, TextOf(home / kSiteFile));
  if (!absl::StripAsciiWhitespace(text).empty()) {
    TUTTI_RETURN_IF_ERROR(ReadSiteText(text, (home / kSiteFile).string(), home, site));
  }
  for (Assets* assets : {&site.data_assets, &site.environment_assets, &site.component_assets}) {
    TUTTI_ASSIGN_OR_RETURN(*assets, ReadAssets(home, assets->kind()));
  }
  TUTTI_ASSIGN_OR_RETURN(site.compute_files, ReadComputes(home));
  TUTTI_ASSIGN_OR_RETURN(site.datastores, ReadDatastores(home));
  TUTTI_ASSIGN_OR_RETURN(const DataMap map, ReadDataMap(home));
  for (const auto& [canonical, entry] : map.entries()) {
    TUTTI_RETURN_IF_ERROR(site.data.Add(entry.prefix, entry.folder));
  }
  return site;
}

std::vector<fs::path> SiteFiles(const fs::path& home) {
  std::vector<fs::path> files = {home / kSiteFile, home / kDataMapFile, ComputesFile(home),
                                 DatastoresFile(home)};
  for (const AssetKind kind : {AssetKind::kData, AssetKind::kEnvironment, AssetKind::kComponent}) {
    files.push_back(AssetsFile(home, kind));
  }
  return files;
}

namespace {

// Where systemd puts this process's credentials; empty: it has none.
fs::path Credentials() {
  const char* const folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

}  // namespace

fs::path SecretKeyFile(const Site& site, const fs::path& home) {
  if (!site.secret_key_file.empty()) return site.secret_key_file;
  const fs::path credential = Credentials() / "tutti.secrets.key";
  std::error_code error;
  if (credential.is_absolute() && fs::exists(credential, error)) return credential;
  return home / kSecretKeyName;
}

bool IsCredential(const fs::path& file) {
  const fs::path own = (Credentials() / file.filename()).lexically_normal();
  return own.is_absolute() && file.lexically_normal() == own;
}

absl::StatusOr<DataMap> ReadDataMap(const fs::path& home) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, TextOf(home / kDataMapFile));
  Site site;
  if (!absl::StripAsciiWhitespace(text).empty()) {
    TUTTI_RETURN_IF_ERROR(ReadSiteText(text, (home / kDataMapFile).string(), home, site));
  }
  return site.data;
}

absl::Status WriteDataMap(const fs::path& home, const DataMap& map) {
  std::string text = "# Written by `tutti data map`: addresses and the local copies of them.\n";
  absl::StrAppend(&text, map.entries().empty() ? "data: {}\n" : "data:\n");
  for (const auto& [canonical, entry] : map.entries()) {
    absl::StrAppend(&text, "  ", InQuotes(entry.prefix), ": ", InQuotes(entry.folder), "\n");
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home));
  return base::WriteFileAtomic(home / kDataMapFile, text);
}

}  // namespace tutti::spec
