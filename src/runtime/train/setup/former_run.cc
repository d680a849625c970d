#include "runtime/train/setup/former_run.h"

#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/status.h"

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

}  // namespace tutti::train
