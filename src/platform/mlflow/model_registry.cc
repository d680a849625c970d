#include "platform/mlflow/model_registry.h"

#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;

constexpr char kEntryPoints[] =
    "[mlflow.model_registry_store]\nfile = tutti_model_registry:FileStore\n";
constexpr char kMetadata[] = "Metadata-Version: 2.1\nName: tutti-model-registry\nVersion: 1.0\n";

// "mlflow-1.30.1.dist-info"; mlflow-skinny is the same without some of what it depends on.
bool IsMlflow1(absl::string_view name) {
  return absl::EndsWith(name, "-info") &&
         (absl::StartsWith(name, "mlflow-1.") || absl::StartsWith(name, "mlflow_skinny-1."));
}

}  // namespace

bool HasMlflow1(const fs::path& packages) {
  std::error_code error;
  for (fs::directory_iterator entry(packages, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsMlflow1(entry->path().filename().string())) return true;
  }
  return false;
}

absl::Status AddModelRegistry(const fs::path& shared, const fs::path& own) {
  if (!HasMlflow1(shared)) return absl::OkStatus();
  const fs::path about = own / "tutti_model_registry-1.0.dist-info";
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(about));
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(about / "entry_points.txt", kEntryPoints));
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(about / "METADATA", kMetadata));
  return base::ReplaceFile(own / "tutti_model_registry.py", std::string(ModelRegistryText()));
}

}  // namespace tutti::mlflow
