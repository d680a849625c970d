// CheckpointFolder keeps the checkpoints of one training run: step-00001200/ and so on below one
// folder (docs/formats/checkpoint.md).
//
// Invariant: a step that List names was written whole and synced; an older one goes only after a
// newer one has become durable. One process saves; any number read meanwhile. Thread-compatible.
//
// Save works in the caller's thread, on tensors that nobody changes until it returns: there is no
// writer in the background. It holds one tensor at a time, the model's first and then the
// optimizer's, each in FileOrder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace tutti::checkpoint {

struct Checkpoint {
  int64_t step = 0;
  TensorMap model;       // parameters and buffers
  TensorMap optimizer;   // "momentum.<parameter>" and the like
  nlohmann::json state;  // epoch, seed, world size, recipe, ...
};

// A checkpoint to be saved, whose tensors may lie elsewhere until they are written.
struct CheckpointSources {
  int64_t step = 0;
  TensorSources model, optimizer;
  nlohmann::json state;
};

// Returns sources of a checkpoint's own tensors, whose memory they share.
CheckpointSources SourcesOf(const Checkpoint& checkpoint);

struct SavedCheckpoint {
  std::filesystem::path path;
  uint64_t bytes = 0;
  // Why an older one, or what a writer that was killed left, could not be removed. The next Save
  // tries again.
  absl::Status not_removed;
};

struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::filesystem::path path;
  // Each newer checkpoint that was passed over because it is damaged has one, which says what is
  // wrong with which file and is to be shown to the user.
  std::vector<std::string> warnings;
};

class CheckpointFolder {
 public:
  // Save leaves the newest `keep` checkpoints, at least 1.
  CheckpointFolder(std::filesystem::path root, int keep);

  // Saves a checkpoint, which is durable when it returns. On an error, such as a full disk
  // (ResourceExhausted) or a tensor that does not come, the checkpoints there were before are
  // untouched, nothing of this one stays and no further tensor is asked for. Replaces one of the
  // same step. That older ones cannot be removed is no error, since this one is safe.
  absl::StatusOr<SavedCheckpoint> Save(const CheckpointSources& checkpoint);

  // Lists the steps that there are, ascending; none when the folder does not exist.
  absl::StatusOr<std::vector<int64_t>> List() const;

  // Loads a checkpoint; every byte is verified. NotFound: there is no such step; DataLoss names the
  // file that is missing, cut short or changed.
  absl::StatusOr<Checkpoint> Load(int64_t step) const;

  // Loads and verifies its state alone; its errors are those of Load.
  absl::StatusOr<nlohmann::json> LoadState(int64_t step) const;

  // Loads the newest that verifies. A damaged one costs the steps since the one before it, not the
  // run; but it is told. NotFound: there is no checkpoint; DataLoss: all are damaged, and how.
  absl::StatusOr<NewestCheckpoint> LoadNewest() const;

 private:
  std::filesystem::path PathOf(int64_t step) const;
  absl::StatusOr<Manifest> Open(int64_t step) const;
  absl::Status RemoveLeftovers() const;
  absl::Status Release(int64_t newest) const;

  std::filesystem::path root_;
  int keep_;
};

}  // namespace tutti::checkpoint
