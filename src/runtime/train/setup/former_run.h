// Finds the checkpoint that a run goes on from, and what was decided for the run that wrote it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

// Loads the checkpoint that recipe.resume names. Errors are those of CheckpointFolder.
absl::StatusOr<checkpoint::NewestCheckpoint> FindToResume(const Recipe& recipe);

// Returns what the recipe in a checkpoint's state says of a field; empty: nothing.
std::string SaidBy(const nlohmann::json& state, const char* field);

// What was taken by the run that recipe.resume goes on with, as its newest readable checkpoint
// says; empty where there is none or it does not say. What is wrong with a checkpoint is for
// BeginOrResume (runtime/train/run_state.h) to tell.
struct TakenBefore {
  std::string precision;         // "fp32" or "bf16"
  std::optional<bool> winograd;  // see TakeWinograd
  std::string cut;               // of its pipeline
};
TakenBefore TakenToResume(const Recipe& recipe);

}  // namespace tutti::train
