#include "runtime/checkpoint/checkpoint_folder.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/manifest.h"

namespace tutti::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kCheckpointFormat[] = "tutti-checkpoint";
constexpr char kModel[] = "model.safetensors";
constexpr char kOptimizer[] = "optimizer.safetensors";
constexpr char kState[] = "state.json";

std::string NameOf(int64_t step) { return absl::StrFormat("step-%08d", step); }

// The step of "step-00001200"; -1 for any other name, such as "step-00001200.tmp".
int64_t StepOf(const std::string& name) {
  absl::string_view digits = name;
  int64_t step = -1;
  if (!absl::ConsumePrefix(&digits, "step-") || !absl::SimpleAtoi(digits, &step) ||
      name != NameOf(step)) {
    return -1;
  }
  return step;
}

// Returns the path of a checkpoint while it is being written or removed.
fs::path Unfinished(const fs::path& path) { return path.string() + ".tmp"; }

absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(root, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return base::ErrnoStatus("list " + root.string(), error.value());
  return names;
}

absl::StatusOr<TensorMap> ReadTensors(const Manifest& manifest, const char* name) {
  TUTTI_ASSIGN_OR_RETURN(std::string bytes, manifest.ReadFile(name));
  auto tensors = ParseSafetensors(std::move(bytes));
  if (!tensors.ok()) return base::Annotate(tensors.status(), (manifest.folder() / name).string());
  return tensors;
}

absl::StatusOr<SavedCheckpoint> Write(const CheckpointSources& checkpoint, const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(FolderWriter folder, FolderWriter::Create(path));
  TUTTI_RETURN_IF_ERROR(AddTensors(folder, kModel, checkpoint.model));
  TUTTI_RETURN_IF_ERROR(AddTensors(folder, kOptimizer, checkpoint.optimizer));
  TUTTI_RETURN_IF_ERROR(folder.Add(kState, checkpoint.state.dump(/*indent=*/2) + "\n"));
  TUTTI_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      folder.Commit({{"format", kCheckpointFormat}, {"version", 1}, {"step", checkpoint.step}}));
  return SavedCheckpoint{path, bytes, absl::OkStatus()};
}

}  // namespace

CheckpointSources SourcesOf(const Checkpoint& checkpoint) {
  return {checkpoint.step, SourcesOf(checkpoint.model), SourcesOf(checkpoint.optimizer),
          checkpoint.state};
}

CheckpointFolder::CheckpointFolder(fs::path root, int keep)
    : root_(std::move(root)), keep_(std::max(keep, 1)) {}

fs::path CheckpointFolder::PathOf(int64_t step) const { return root_ / NameOf(step); }

absl::StatusOr<SavedCheckpoint> CheckpointFolder::Save(const CheckpointSources& checkpoint) {
  if (checkpoint.step < 0) return absl::InvalidArgumentError("a step is not negative");
  absl::Status removed = RemoveLeftovers();  // first: they take room
  auto saved = Write(checkpoint, PathOf(checkpoint.step));
  if (!saved.ok()) {
    return base::Annotate(saved.status(),
                          absl::StrCat("the checkpoint of step ", checkpoint.step,
                                       " was not saved, those before it are intact"));
  }
  removed.Update(Release(checkpoint.step));
  saved->not_removed = std::move(removed);
  return saved;
}

// Removes what writers and removals left that did not come to their end, whatever their steps.
absl::Status CheckpointFolder::RemoveLeftovers() const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(root_));
  absl::Status removed;
  for (const std::string& name : names) {
    absl::string_view step = name;
    if (!absl::ConsumeSuffix(&step, ".tmp") || StepOf(std::string(step)) < 0) continue;
    removed.Update(base::RemoveTree(root_ / name));
  }
  return removed;
}

// Those of later steps stay: they are of a run that went further, and not for this one to delete.
// A name that ends in .tmp is no checkpoint any more, however far its removal gets. One that cannot
// be removed keeps no other one.
absl::Status CheckpointFolder::Release(int64_t newest) const {
  TUTTI_ASSIGN_OR_RETURN(std::vector<int64_t> steps, List());
  std::erase_if(steps, [&](int64_t step) { return step > newest; });
  absl::Status removed;
  for (size_t i = 0; i + keep_ < steps.size(); ++i) {
    const fs::path path = PathOf(steps[i]);
    std::error_code error;
    fs::rename(path, Unfinished(path), error);
    removed.Update(error ? base::ErrnoStatus("rename " + path.string(), error.value())
                         : base::RemoveTree(Unfinished(path)));
  }
  return removed;
}

absl::StatusOr<std::vector<int64_t>> CheckpointFolder::List() const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(root_));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (const int64_t step = StepOf(name); step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::StatusOr<Manifest> CheckpointFolder::Open(int64_t step) const {
  const fs::path path = PathOf(step);
  if (!fs::exists(path)) {
    return absl::NotFoundError(
        absl::StrCat("no checkpoint of step ", step, " in ", root_.string()));
  }
  TUTTI_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Read(path, kCheckpointFormat));
  if (manifest.head().value("step", nlohmann::json()) != nlohmann::json(step)) {
    return absl::DataLossError(
        absl::StrCat((path / "manifest.json").string(), " is damaged: it is of another step"));
  }
  return manifest;
}

absl::StatusOr<nlohmann::json> CheckpointFolder::LoadState(int64_t step) const {
  TUTTI_ASSIGN_OR_RETURN(const Manifest manifest, Open(step));
  return manifest.ReadJson(kState);
}

absl::StatusOr<Checkpoint> CheckpointFolder::Load(int64_t step) const {
  TUTTI_ASSIGN_OR_RETURN(const Manifest manifest, Open(step));
  Checkpoint checkpoint;
  checkpoint.step = step;
  TUTTI_ASSIGN_OR_RETURN(checkpoint.model, ReadTensors(manifest, kModel));
  TUTTI_ASSIGN_OR_RETURN(checkpoint.optimizer, ReadTensors(manifest, kOptimizer));
  TUTTI_ASSIGN_OR_RETURN(checkpoint.state, manifest.ReadJson(kState));
  return checkpoint;
}

absl::StatusOr<NewestCheckpoint> CheckpointFolder::LoadNewest() const {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, List());
  NewestCheckpoint newest;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    auto checkpoint = Load(*step);
    if (checkpoint.ok()) {
      newest.checkpoint = *std::move(checkpoint);
      newest.path = PathOf(*step);
      return newest;
    }
    newest.warnings.push_back(absl::StrCat("checkpoint of step ", *step,
                                           " passed over: ", checkpoint.status().message()));
  }
  if (steps.empty()) {
    return absl::NotFoundError(absl::StrCat("no checkpoint in ", root_.string()));
  }
  return absl::DataLossError(absl::StrCat("every checkpoint in ", root_.string(),
                                          " is damaged: ", absl::StrJoin(newest.warnings, "; ")));
}

}  // namespace tutti::checkpoint
