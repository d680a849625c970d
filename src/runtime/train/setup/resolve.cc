#include "runtime/train/setup/resolve.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"

namespace tutti::train {
namespace {

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

// What was taken by the run that recipe.resume goes on with, as its newest readable checkpoint
// says; empty where there is none or it does not say. What is wrong with a checkpoint is for
// BeginOrResume (run_state.h) to tell.
struct TakenBefore {
  std::string precision;         // "fp32" or "bf16"
  std::optional<bool> winograd;  // see TakeWinograd
  std::string cut;               // of its pipeline
};

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

}  // namespace

std::string SaidBy(const nlohmann::json& state, const char* field) {
  const nlohmann::json recipe =
      state.is_object() ? state.value("recipe", nlohmann::json()) : nlohmann::json();
  const nlohmann::json said =
      recipe.is_object() ? recipe.value(field, nlohmann::json()) : nlohmann::json();
  return said.is_string() ? said.get<std::string>() : "";
}

absl::StatusOr<checkpoint::NewestCheckpoint> FindToResume(const Recipe& recipe) {
  const Place place = PlaceOf(recipe);
  if (!place.step) return place.folder.LoadNewest();
  checkpoint::NewestCheckpoint found;
  TUTTI_ASSIGN_OR_RETURN(found.checkpoint, place.folder.Load(*place.step));
  found.path = place.path;
  return found;
}

absl::StatusOr<Resolved> Resolve(const Recipe& asked, const parallel::Layout& layout,
                                 torch::Device device, comm::Communicator& group) {
  Resolved resolved;
  Recipe& recipe = resolved.recipe = ForRanks(asked, layout.shares());
  PrepareMachine(recipe.threads, device.is_cuda());
  TakenBefore before = layout.reports() ? TakenToResume(recipe) : TakenBefore{};
  const auto deadline = base::Deadline::After(absl::Seconds(recipe.step_timeout));
  TUTTI_ASSIGN_OR_RETURN(PrecisionTaken taken, TakePrecision(recipe.precision, before.precision,
                                                             device, group, deadline));
  recipe.precision = taken.precision;
  // Products that were taken in another precision say nothing of this one's.
  const std::optional<bool> kept =
      before.precision == taken.precision ? before.winograd : std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(recipe.winograd, TakeWinograd(recipe, kept, group, deadline));
  resolved.precision_reason = std::move(taken.why);
  resolved.former_cut = std::move(before.cut);
  return resolved;
}

}  // namespace tutti::train
