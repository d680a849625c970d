#include "spec/data_asset.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/waiting.h"
#include "platform/client/commands/commands.h"
#include "spec/data_map.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestDataFile = 1 << 20;

// Held while the list is read, changed and written.
absl::StatusOr<base::UniqueFd> LockAssets(const fs::path& home) {
  static const std::atomic<bool> never = false;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home));
  return base::LockFile(home / "data-assets.lock", never);
}

}  // namespace

absl::StatusOr<ExitCode> DataCreate(Context& context, const DataAssetOptions& options) {
  const auto text = base::ReadFile(options.file, kLargestDataFile);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  TUTTI_ASSIGN_OR_RETURN(
      spec::ReadDataResult read,
      spec::ReadDataFile(*text, options.file, fs::absolute(options.file).parent_path()));
  for (const std::string& warning : read.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  if (!options.name.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--name", options.name));
    read.asset.name = options.name;
  }
  if (!options.version.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--version", options.version));
    read.asset.version = options.version;
  }
  std::error_code error;
  if (!spec::IsAddress(read.asset.path) && !fs::exists(read.asset.path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.file, ": path ", read.asset.path, " does not exist"));
  }
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockAssets(context.home));
  TUTTI_ASSIGN_OR_RETURN(spec::DataAssets assets, spec::ReadDataAssets(context.home));
  TUTTI_ASSIGN_OR_RETURN(const spec::DataAsset added, assets.Add(read.asset));
  TUTTI_RETURN_IF_ERROR(spec::WriteDataAssets(context.home, assets));
  context.out << "azureml:" << added.name << ":" << added.version << " is " << added.path << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DataDelete(Context& context, const DataAssetOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockAssets(context.home));
  TUTTI_ASSIGN_OR_RETURN(spec::DataAssets assets, spec::ReadDataAssets(context.home));
  TUTTI_RETURN_IF_ERROR(assets.Remove(options.name, options.version));
  TUTTI_RETURN_IF_ERROR(spec::WriteDataAssets(context.home, assets));
  return ExitCode::kOk;
}

}  // namespace tutti::client
