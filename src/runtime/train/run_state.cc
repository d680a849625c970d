#include "runtime/train/run_state.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/checkpoint/folder_writer.h"
#include "runtime/models/state.h"
#include "runtime/train/setup/resolve.h"
#include "runtime/train/whole_state.h"

namespace tutti::train {
namespace {

// What must be the same for the steps to go on as they would have.
nlohmann::json IdentityOf(const Recipe& recipe, const data::Dataset& images) {
  return {{"model", recipe.model},
          {"seed", recipe.seed},
          {"global_batch", recipe.batch},
          {"train_images", images.size()},
          {"classes", images.classes()}};
}

// A list of classes may be long: the first that is another one. Empty: none is.
std::string DifferenceOf(const nlohmann::json& theirs, const std::vector<std::string>& classes) {
  if (!theirs.is_array()) return "";  // it is older than this
  if (theirs.size() != classes.size()) {
    return absl::StrCat("it has ", theirs.size(), " classes, this run has ", classes.size());
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    if (theirs[i] == classes[i]) continue;
    return absl::StrCat("its class ", i, " is ", theirs[i].dump(), ", this run's is \"", classes[i],
                        "\"");
  }
  return "";
}

// All that differs, and which tensors do: a model of the same name may be for other classes.
absl::Status CheckIdentity(const checkpoint::Checkpoint& from, const Recipe& recipe,
                           const data::Dataset& images, const checkpoint::TensorMap& whole) {
  std::vector<std::string> differences;
  const nlohmann::json identity = IdentityOf(recipe, images);
  for (const auto& [key, value] : identity.items()) {
    const nlohmann::json theirs = from.state.value(key, nlohmann::json());
    if (theirs == value || key == "classes") continue;
    differences.push_back(
        absl::StrCat("its ", key, " is ", theirs.dump(), ", this run's is ", value.dump()));
  }
  const std::string other_class =
      DifferenceOf(from.state.value("classes", nlohmann::json()), images.classes());
  if (!other_class.empty()) differences.push_back(other_class);
  const absl::Status tensors = models::CheckState(from.model, whole);
  if (!tensors.ok()) differences.emplace_back(tensors.message());
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint is of another run: ", absl::StrJoin(differences, "; ")));
}

// What the checkpoint's recipe says. One that says nothing is told by its tensors: it is older than
// the optimizers that have the same names for theirs, or another program's. Empty: nothing tells
// it.
std::string OptimizerOf(const checkpoint::Checkpoint& from) {
  std::string said = SaidBy(from.state, "optimizer");
  if (!said.empty()) return said;
  for (const auto& [name, tensor] : from.optimizer) {
    if (name.starts_with("exp_avg.")) return "adamw";
    if (name.starts_with("momentum.")) return "sgd";
  }
  return "";
}

absl::Status CheckOptimizer(const checkpoint::Checkpoint& from, const Recipe& recipe,
                            const Catalogue& to) {
  const std::string theirs = OptimizerOf(from);
  if (!theirs.empty() && theirs != recipe.optimizer) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint is of another optimizer: its run had \"", theirs,
                     "\", this one has \"", recipe.optimizer, "\"; go on with --optimizer ", theirs,
                     ", or start anew in another --output without --resume"));
  }
  for (const auto& [name, tensor] : to.run) {
    if (to.may_lack.at(name)) continue;
    const auto found = from.optimizer.find(name);
    if (found == from.optimizer.end() || found->second.sizes() != tensor.sizes()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint has no fitting optimizer state \"", name, "\"",
                       name.starts_with("average.") ? ": its run had no --ema" : ""));
    }
  }
  return absl::OkStatus();
}

// Whether steps to come are others for it: stages and replicas leave them as they are, but for
// stages that do not wait for each other.
bool IsAnotherExchange(const std::string& theirs, const Recipe& recipe) {
  parallel::Parallelism before;
  if (!ReadParallelism(theirs, before).ok()) return false;
  const auto& [mesh, exchange, decoupling] = recipe.parallel;
  return before.exchange != exchange || before.decoupling != decoupling ||
         (before.mesh.servers > 0) != (mesh.servers > 0) ||
         (decoupling.is_on() && before.mesh.pipeline != mesh.pipeline);
}

// What of the recipe is another one, and makes the steps to come others than they would have been.
std::vector<std::string> ChangesOf(const checkpoint::Checkpoint& from, const Recipe& recipe) {
  constexpr absl::string_view kTold[] = {"accumulation", "ema",      "mixup",
                                         "cutmix",       "sync-bn",  "compression",
                                         "clip-norm",    "parallel", "label-smoothing"};
  std::vector<std::string> changes;
  const auto ours = FieldTexts(recipe);
  for (const absl::string_view field : kTold) {
    const std::string name(field), theirs = SaidBy(from.state, name.c_str());
    const auto found = ours.find(name);
    if (theirs.empty() || found == ours.end() || found->second == theirs) continue;
    if (name == "parallel" && !IsAnotherExchange(theirs, recipe)) continue;
    changes.push_back(absl::StrCat("the run had --", name, " ", theirs, " up to step ", from.step,
                                   ", and goes on with ", found->second));
  }
  return changes;
}

bool LiesIn(const std::filesystem::path& path, const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::equivalent(path, folder, error) ||
         std::filesystem::equivalent((path / "").parent_path().parent_path(), folder, error);
}

absl::Status CheckOutput(const Recipe& recipe) {
  const std::filesystem::path output = recipe.output, checkpoints = output / "checkpoints";
  TUTTI_RETURN_IF_ERROR(checkpoint::FolderWriter::CheckMayReplace(output / "model"));
  if (recipe.keep_best) {
    TUTTI_RETURN_IF_ERROR(checkpoint::FolderWriter::CheckMayReplace(output / "best"));
  }
  if (recipe.resume == "latest" || LiesIn(recipe.resume, checkpoints)) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                         checkpoint::CheckpointFolder(checkpoints, 1).List());
  if (steps.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      checkpoints.string(), " holds checkpoints of an earlier run, up to step ", steps.back(),
      ": go on from there with --resume, or choose another --output, ", "or remove the folder"));
}

absl::Status CheckFits(const checkpoint::Checkpoint& from, const Recipe& recipe,
                       const data::Dataset& images, const Catalogue& whole) {
  if (!from.state.is_object()) {
    return absl::FailedPreconditionError(
        "its state.json is no JSON object, so it is no checkpoint of tutti-train: choose another");
  }
  TUTTI_RETURN_IF_ERROR(CheckIdentity(from, recipe, images, whole.model));
  return CheckOptimizer(from, recipe, whole);
}

RunProgress ProgressOf(const checkpoint::Checkpoint& from) {
  const nlohmann::json best = from.state.value("best", nlohmann::json());
  return {.step = from.step,
          .evaluated = from.state.value("evaluated", nlohmann::json(true)) == true,
          .best = best.is_number() ? best.get<double>() : kNoneYet};
}

// `read` gets the checkpoint, which fits `whole`.
absl::StatusOr<Resumed> ReadOnRankZero(const Recipe& recipe, const data::Dataset& images,
                                       const Catalogue& whole, checkpoint::Checkpoint& read) {
  TUTTI_RETURN_IF_ERROR(CheckOutput(recipe));
  if (recipe.resume == "no") return Resumed{};
  auto found = FindToResume(recipe);
  if (absl::IsNotFound(found.status()) && recipe.resume == "latest") return Resumed{};
  TUTTI_RETURN_IF_ERROR(found.status());
  const absl::Status fits = CheckFits(found->checkpoint, recipe, images, whole);
  if (!fits.ok()) return base::Annotate(fits, found->path.string());
  read = std::move(found->checkpoint);
  Resumed resumed{true, found->path.string(), std::move(found->warnings)};
  for (std::string& change : ChangesOf(read, recipe)) resumed.warnings.push_back(std::move(change));
  return resumed;
}

// Gives all ranks what rank 0 knows.
absl::Status Share(parallel::Strategy& strategy, RunProgress& progress, bool& resumed, bool& failed,
                   base::Deadline deadline) {
  const torch::Tensor said = torch::tensor(
      {static_cast<double>(progress.step), progress.best, static_cast<double>(progress.evaluated),
       static_cast<double>(resumed), static_cast<double>(failed)},
      torch::kFloat64);
  TUTTI_RETURN_IF_ERROR(strategy.Broadcast(said, deadline));
  const auto* values = said.const_data_ptr<double>();
  progress = {static_cast<int64_t>(values[0]), values[2] != 0, values[1]};
  resumed = values[3] != 0;
  failed = values[4] != 0;
  return absl::OkStatus();
}

}  // namespace

parallel::State StateOf(const Parts& parts) {
  parallel::State all = parts.strategy->state();
  for (parallel::StateTensor& each : parts.train->state()) {
    each.writes = parts.strategy->rank() == 0;
    all.push_back(std::move(each));
  }
  return all;
}

nlohmann::json DescribeRun(const Recipe& recipe, const Parts& parts, const RunProgress& progress) {
  nlohmann::json said = IdentityOf(recipe, *parts.input.train_images);
  said["step"] = progress.step;
  said["evaluated"] = progress.evaluated;
  said["best"] = progress.best;
  said["epoch"] = progress.step / parts.train->steps_per_epoch();
  said["world_size"] = parts.strategy->world_size();
  if (!parts.cut.empty()) said["cut"] = parts.cut;
  said["recipe"] = FieldTexts(recipe);
  return said;
}

absl::StatusOr<Resumed> BeginOrResume(const Recipe& recipe, Parts& parts, RunProgress& progress,
                                      absl::Duration timeout) {
  const auto deadline = base::Deadline::After(timeout);
  parallel::Strategy& strategy = *parts.strategy;
  const parallel::State own = StateOf(parts);
  TUTTI_ASSIGN_OR_RETURN(const Catalogue whole, CatalogueOf(strategy, own, timeout));
  absl::StatusOr<Resumed> begun = Resumed{};
  checkpoint::Checkpoint read;
  if (strategy.layout().reports()) {
    begun = ReadOnRankZero(recipe, *parts.input.train_images, whole, read);
    if (begun.ok() && begun->resumed) progress = ProgressOf(read);
  }
  bool resumed = begun.ok() && begun->resumed, failed = !begun.ok();
  TUTTI_RETURN_IF_ERROR(Share(strategy, progress, resumed, failed, deadline));
  TUTTI_RETURN_IF_ERROR(begun.status());
  if (failed) return absl::AbortedError("rank 0 could not begin; its own error says why");
  parts.train->SetPosition(progress.step);
  if (resumed) {
    TUTTI_RETURN_IF_ERROR(ReadWhole(strategy, read.model, read.optimizer, own, timeout));
  }
  const auto synchronized = base::Deadline::After(timeout);  // reading may have taken its time
  TUTTI_RETURN_IF_ERROR(strategy.Synchronize(synchronized));
  for (const parallel::StateTensor& each : parts.train->state()) {
    TUTTI_RETURN_IF_ERROR(strategy.Broadcast(each.tensor, synchronized));
  }
  TUTTI_RETURN_IF_ERROR(parts.train->Seek());
  return begun;
}

}  // namespace tutti::train
