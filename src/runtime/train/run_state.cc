#include "runtime/train/run_state.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/checkpoint/folder_writer.h"
#include "runtime/models/state.h"
#include "runtime/train/whole_state.h"

namespace tutti::train {
namespace {

// What must be the same for the steps to go on as they would have.
nlohmann::json IdentityOf(const RunState& run, const Recipe& recipe) {
  return {{"model", recipe.model},
          {"seed", recipe.seed},
          {"global_batch", recipe.batch},
          {"train_images", run.train_images.size()},
          {"classes", run.train_images.classes()}};
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
                           const RunState& run, const checkpoint::TensorMap& whole) {
  std::vector<std::string> differences;
  const nlohmann::json identity = IdentityOf(run, recipe);
  for (const auto& [key, value] : identity.items()) {
    const nlohmann::json theirs = from.state.value(key, nlohmann::json());
    if (theirs == value || key == "classes") continue;
    differences.push_back(
        absl::StrCat("its ", key, " is ", theirs.dump(), ", this run's is ", value.dump()));
  }
  const std::string other_class =
      DifferenceOf(from.state.value("classes", nlohmann::json()), run.train_images.classes());
  if (!other_class.empty()) differences.push_back(other_class);
  const absl::Status tensors = models::CheckState(from.model, whole);
  if (!tensors.ok()) differences.emplace_back(tensors.message());
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint is of another run: ", absl::StrJoin(differences, "; ")));
}

// What the recipe in a checkpoint's state says; empty: nothing.
std::string SaidBy(const nlohmann::json& state, const char* field) {
  const nlohmann::json recipe =
      state.is_object() ? state.value("recipe", nlohmann::json()) : nlohmann::json();
  const nlohmann::json said =
      recipe.is_object() ? recipe.value(field, nlohmann::json()) : nlohmann::json();
  return said.is_string() ? said.get<std::string>() : "";
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
                            const checkpoint::TensorMap& to) {
  const std::string theirs = OptimizerOf(from);
  if (!theirs.empty() && theirs != recipe.optimizer) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint is of another optimizer: its run had \"", theirs,
                     "\", this one has \"", recipe.optimizer, "\"; go on with --optimizer ", theirs,
                     ", or start anew in another --output without --resume"));
  }
  for (const auto& [name, tensor] : to) {
    const auto found = from.optimizer.find(name);
    if (found == from.optimizer.end() || found->second.sizes() != tensor.sizes()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint has no fitting optimizer state \"", name, "\"",
                       name.starts_with("average.") ? ": its run had no --ema" : ""));
    }
  }
  return absl::OkStatus();
}

// The residual by name, as views. Checkpoints call it "owed.layer1.0.conv1.weight", and keep that
// name so that older ones are read.
checkpoint::TensorMap ResidualState(const RunState& run) {
  checkpoint::TensorMap state;
  if (!run.residual.empty()) AddByName("owed.", run.buckets, run.residual, state);
  return state;
}

// Nothing is kept back of a parameter where the checkpoint says nothing: it may be of a run that
// did not compress.
void RestoreResidual(const checkpoint::TensorMap& from, const RunState& run) {
  for (auto& [name, tensor] : ResidualState(run)) {
    const auto found = from.find(name);
    if (found != from.end() && found->second.sizes() == tensor.sizes()) tensor.copy_(found->second);
  }
}

// Where recipe.resume points to.
struct Place {
  checkpoint::CheckpointFolder folder;
  std::filesystem::path path;
  std::optional<int64_t> step;  // none: the newest
};

Place PlaceOf(const Recipe& recipe) {
  const int keep = static_cast<int>(recipe.keep_checkpoints);
  if (recipe.resume == "latest") {
    const std::filesystem::path own = std::filesystem::path(recipe.output) / "checkpoints";
    return {checkpoint::CheckpointFolder(own, keep), own, std::nullopt};
  }
  const std::filesystem::path folder =
      (std::filesystem::path(recipe.resume) / "").parent_path();  // without a slash at the end
  const std::string written = folder.filename().native();
  absl::string_view name = written;
  int64_t step = 0;
  if (!absl::ConsumePrefix(&name, "step-") || !absl::SimpleAtoi(name, &step)) {
    return {checkpoint::CheckpointFolder(folder, keep), folder, std::nullopt};
  }
  return {checkpoint::CheckpointFolder(folder.parent_path(), keep), folder, step};
}

absl::StatusOr<checkpoint::NewestCheckpoint> Find(const Recipe& recipe) {
  const Place place = PlaceOf(recipe);
  if (!place.step) return place.folder.LoadNewest();
  checkpoint::NewestCheckpoint found;
  TUTTI_ASSIGN_OR_RETURN(found.checkpoint, place.folder.Load(*place.step));
  found.path = place.path;
  return found;
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

// What all ranks hold, by name; without memory where it is another rank's.
struct Whole {
  checkpoint::TensorMap model, optimizer;
};

absl::Status CheckFits(const checkpoint::Checkpoint& from, const Recipe& recipe,
                       const RunState& run, const Whole& whole) {
  if (!from.state.is_object()) {
    return absl::FailedPreconditionError(
        "its state.json is no JSON object, so it is no checkpoint of tutti-train: choose another");
  }
  TUTTI_RETURN_IF_ERROR(CheckIdentity(from, recipe, run, whole.model));
  return CheckOptimizer(from, recipe, whole.optimizer);
}

// All but the tensors of model and optimizer.
void TakeUp(const checkpoint::Checkpoint& from, RunState& run) {
  torch::NoGradGuard no_grad;
  RestoreResidual(from.optimizer, run);
  run.step = from.step;
  run.evaluated = from.state.value("evaluated", nlohmann::json(true)) == true;
  const nlohmann::json best = from.state.value("best", nlohmann::json());
  run.best = best.is_number() ? best.get<double>() : kNoneYet;
}

// `read` gets the checkpoint's tensors, which fit `whole`.
absl::StatusOr<Resumed> ReadOnRankZero(const Recipe& recipe, const Whole& whole, RunState& run,
                                       checkpoint::Checkpoint& read) {
  TUTTI_RETURN_IF_ERROR(CheckOutput(recipe));
  if (recipe.resume == "no") return Resumed{};
  auto found = Find(recipe);
  if (absl::IsNotFound(found.status()) && recipe.resume == "latest") return Resumed{};
  TUTTI_RETURN_IF_ERROR(found.status());
  const absl::Status fits = CheckFits(found->checkpoint, recipe, run, whole);
  if (!fits.ok()) return base::Annotate(fits, found->path.string());
  TakeUp(found->checkpoint, run);
  read = std::move(found->checkpoint);
  return Resumed{true, found->path.string(), std::move(found->warnings)};
}

}  // namespace

TakenBefore TakenToResume(const Recipe& recipe) {
  if (recipe.resume == "no") return {};
  const Place place = PlaceOf(recipe);
  const std::vector<int64_t> steps =
      place.step ? std::vector{*place.step} : place.folder.List().value_or(std::vector<int64_t>());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const auto state = place.folder.LoadState(*step);
    if (!state.ok()) continue;
    TakenBefore taken;
    const std::string precision = SaidBy(*state, "precision"),
                      winograd = SaidBy(*state, "winograd");
    if (precision == "fp32" || precision == "bf16") taken.precision = precision;
    if (winograd == "true" || winograd == "false") taken.winograd = winograd == "true";
    const nlohmann::json cut = state->is_object() ? state->value("cut", nlohmann::json()) : "";
    if (cut.is_string()) taken.cut = cut;
    return taken;
  }
  return {};
}

checkpoint::Checkpoint Capture(const RunState& run, const Recipe& recipe) {
  checkpoint::Checkpoint taken;
  taken.step = run.step;
  taken.model = models::StateOf(*run.model);
  taken.optimizer = run.optimizer.State();
  taken.optimizer.merge(ResidualState(run));
  taken.state = IdentityOf(run, recipe);
  taken.state["step"] = run.step;
  taken.state["evaluated"] = run.evaluated;
  taken.state["best"] = run.best;
  taken.state["epoch"] = run.step / (run.train_images.size() / recipe.batch);
  taken.state["world_size"] = run.world_size;
  if (!run.cut.empty()) taken.state["cut"] = run.cut;
  taken.state["recipe"] = FieldTexts(recipe);
  return taken;
}

absl::Status Restore(const checkpoint::Checkpoint& from, const Recipe& recipe, RunState& run) {
  checkpoint::TensorMap state = run.optimizer.State();
  TUTTI_RETURN_IF_ERROR(CheckFits(from, recipe, run, {models::StateOf(*run.model), state}));
  TUTTI_RETURN_IF_ERROR(models::LoadState(from.model, *run.model));
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : state) tensor.copy_(from.optimizer.at(name));
  TakeUp(from, run);
  return absl::OkStatus();
}

absl::StatusOr<Resumed> BeginOrResume(const Recipe& recipe, parallel::Strategy& strategy,
                                      RunState& run, absl::Duration timeout) {
  const auto deadline = base::Deadline::After(timeout);
  const Whole own = {models::StateOf(*run.model), run.optimizer.State()};
  Whole whole;
  TUTTI_ASSIGN_OR_RETURN(whole.model, Catalogue(strategy, own.model, timeout));
  TUTTI_ASSIGN_OR_RETURN(whole.optimizer, Catalogue(strategy, own.optimizer, timeout));
  absl::StatusOr<Resumed> resumed = Resumed{};
  checkpoint::Checkpoint read;
  if (strategy.layout().reports()) resumed = ReadOnRankZero(recipe, whole, run, read);
  torch::Tensor said = torch::tensor({int64_t{resumed.ok()}, run.step, int64_t{run.evaluated},
                                      int64_t{resumed.ok() && resumed->resumed}},
                                     torch::kInt64);
  TUTTI_RETURN_IF_ERROR(strategy.Broadcast(said, deadline));
  if (!resumed.ok()) return resumed;
  if (said[0].item<int64_t>() == 0) {
    return absl::AbortedError("rank 0 could not begin; its own error says why");
  }
  run.step = said[1].item<int64_t>();
  run.evaluated = said[2].item<int64_t>() != 0;
  torch::Tensor best = torch::tensor({run.best}, torch::kFloat64);
  TUTTI_RETURN_IF_ERROR(strategy.Broadcast(best, deadline));
  run.best = best.item<double>();
  if (said[3].item<int64_t>() != 0) {
    TUTTI_RETURN_IF_ERROR(ReadWhole(strategy, read.model, own.model, timeout));
    TUTTI_RETURN_IF_ERROR(ReadWhole(strategy, read.optimizer, own.optimizer, timeout));
  }
  TUTTI_RETURN_IF_ERROR(strategy.Synchronize(deadline));
  for (const torch::Tensor& flat : run.optimizer.FlatState()) {
    TUTTI_RETURN_IF_ERROR(strategy.BroadcastToReplicas(flat, deadline));
  }
  for (const torch::Tensor& flat : run.residual) {
    TUTTI_RETURN_IF_ERROR(strategy.BroadcastToReplicas(flat, deadline));
  }
  TUTTI_RETURN_IF_ERROR(strategy.RestoreResidual(run.residual, deadline));
  return resumed;
}

}  // namespace tutti::train
