#include "platform/backup/home_parts.h"

#include "spec/data/asset.h"
#include "spec/data/datastore.h"
#include "spec/data/file_server.h"
#include "spec/site/compute_file.h"
#include "spec/site/site.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

const std::set<std::string>& NotSaved() {
  static const auto* names = new std::set<std::string>{kDatabase,  kSnapshots,     kJobs,   "nodes",
                                                       "incoming", "environments", "slurm", "lock"};
  return *names;
}

// The name in `home` at which the way to `path` begins.
void AddBelow(const fs::path& home, const fs::path& path, std::set<std::string>& parts) {
  if (path.empty()) return;
  const fs::path below = path.lexically_normal().lexically_relative(home.lexically_normal());
  if (below.empty() || *below.begin() == ".." || *below.begin() == ".") return;
  if (!NotSaved().contains(below.begin()->string())) parts.insert(below.begin()->string());
}

}  // namespace

std::set<std::string> PartsOf(const fs::path& home) {
  std::set<std::string> parts = {"token",  "launcher_key", "tls.pem",  "site.yml",
                                 "assets", "data-map.yml", "clusters", "batch-ai"};
  parts.insert(spec::ComputesFile(home).filename().string());
  parts.insert(spec::DatastoresFile(home).filename().string());
  parts.insert(spec::FileServersFile(home).filename().string());
  for (const spec::AssetKind kind :
       {spec::AssetKind::kData, spec::AssetKind::kEnvironment, spec::AssetKind::kComponent}) {
    parts.insert(spec::AssetsFile(home, kind).filename().string());
  }
  const auto site = spec::ReadSite(home);
  if (!site.ok()) return parts;  // one that cannot be read is saved as it is
  for (const auto& [name, file] : site->components) AddBelow(home, file, parts);
  for (const auto* rules : {&site->environments, &site->images}) {
    for (const spec::EnvironmentRule& rule : *rules) AddBelow(home, rule.conda_file, parts);
  }
  return parts;
}

}  // namespace tutti::backup
