#include "platform/launch/environment/mlflow_stores.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/launch/node/node_folders.h"
#include "platform/mlflow/file_store.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kUri[] = "MLFLOW_TRACKING_URI", kRunId[] = "MLFLOW_RUN_ID";
// The search of the job's code ends after so many entries of folders, or so many scripts.
constexpr int kMostEntries = 50'000, kMostScripts = 2000;
constexpr size_t kLongestScript = 8 << 20;  // bytes

bool IsAScript(const fs::path& file) {
  static constexpr absl::string_view kEnds[] = {".py", ".sh", ".R", ".r", ".ipynb"};
  return std::find(std::begin(kEnds), std::end(kEnds), file.extension().string()) !=
         std::end(kEnds);
}

// Whether a file of the code, other than hidden ones and those behind links, has that word.
bool CodeSpeaksOf(absl::string_view word, const spec::LaunchPlan& plan) {
  if (plan.snapshot.empty()) return false;
  const NodeFolders folders(plan.directory);
  const fs::path code = folders.work(), outputs = folders.work_outputs();
  std::error_code error;
  int left = kMostEntries, scripts_left = kMostScripts;
  auto entry = fs::recursive_directory_iterator(code, error);
  for (const fs::recursive_directory_iterator end;
       !error && entry != end && left-- > 0 && scripts_left > 0; entry.increment(error)) {
    std::error_code ignored;
    const bool is_hidden = absl::StartsWith(entry->path().filename().string(), ".");
    if (is_hidden || entry->path() == outputs) entry.disable_recursion_pending();
    if (is_hidden || !IsAScript(entry->path())) continue;
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    --scripts_left;
    const auto text = base::ReadFile(entry->path(), kLongestScript);
    if (text.ok() && absl::StrContains(*text, word)) return true;
  }
  return false;
}

bool SpeaksOf(absl::string_view word, const spec::LaunchPlan& plan) {
  return absl::StrContains(plan.command, word) || CodeSpeaksOf(word, plan);
}

bool WantsARun(const spec::LaunchPlan& plan) {
  if (plan.environment_variables.contains(kRunId)) return false;  // its user's
  return SpeaksOf(kRunId, plan);
}

// The same on each node of an attempt, so that what one rank tells others of its run is in their
// stores too; of no other job's, also not of one of that name.
std::string RunIdOf(const spec::LaunchPlan& plan) {
  return base::Hex(base::Sha256Of(absl::StrCat("run ", plan.allocation_id, plan.launcher_token)))
      .substr(0, 32);
}

}  // namespace

bool NamesVariable(const spec::LaunchPlan& plan, const std::string& name) {
  return plan.environment_variables.contains(name) || plan.environment.variables.contains(name) ||
         plan.secret_variables.contains(name);
}

bool NamesItsOwnMlflow(const spec::LaunchPlan& plan) { return NamesVariable(plan, kUri); }

bool MayTrack(const spec::LaunchPlan& plan) {
  if (!plan.tracks) return false;
  for (const char* name : {kUri, "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"}) {
    if (NamesVariable(plan, name) || plan.secret_files.contains(name)) return false;
  }
  return true;
}

bool ChoosesItsTracking(const spec::LaunchPlan& plan) {
  return (SpeaksOf("set_tracking_uri", plan) || SpeaksOf("tracking_uri=", plan)) &&
         !SpeaksOf(kUri, plan);
}

bool ChoosesItsExperiment(const spec::LaunchPlan& plan) {
  return SpeaksOf("set_experiment(", plan) && !WantsARun(plan);
}

std::filesystem::path MlflowStoreOf(const spec::LaunchPlan& plan, int rank) {
  return NodeFolders(plan.directory).work_outputs() / mlflow::StoreName(rank);
}

std::string MakeMlflowStores(const spec::LaunchPlan& plan) {
  if (NamesItsOwnMlflow(plan)) return "";
  std::string run = WantsARun(plan) ? RunIdOf(plan) : "";
  if (run.empty() && plan.snapshot.empty() && plan.environment.is_host) return "";
  for (int i = 0; i < plan.node().process_count; ++i) {
    const auto store = MlflowStoreOf(plan, plan.node().first_rank + i);
    absl::Status made = mlflow::MakeStore(store, plan.experiment_name);
    if (made.ok() && !run.empty()) made = mlflow::MakeRun(store, run);
    if (made.ok()) continue;
    spdlog::warn("{}", made.ToString());
    run.clear();  // none is better than one that is not in every store
  }
  return run;
}

void RemoveUnusedMlflowStores(const spec::LaunchPlan& plan) {
  for (int i = 0; i < plan.node().process_count; ++i) {
    mlflow::RemoveUnusedStore(MlflowStoreOf(plan, plan.node().first_rank + i));
  }
}

}  // namespace tutti::launch
