// Scorer is a trained model that says which class an image shows. No libtorch in this header.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::scoring {

struct Prediction {
  std::string label;
  double probability = 0;  // softmax over all classes
};

struct FileScore {
  std::string file;  // as given
  absl::Status status;
  std::vector<Prediction> predictions;  // most probable first; empty unless status is OK
};

struct FilesToScore {
  std::vector<std::string> files;
  std::vector<std::string> remarks;  // on files of folders that are no images
};

// Returns `paths` with the images below each folder in its place, sorted, as FOLDER/PATH. NotFound
// names a folder that has none.
absl::StatusOr<FilesToScore> FindFilesToScore(std::span<const std::string> paths);

// Thread-compatible.
class Scorer {
 public:
  // Loads a model folder (docs/formats/checkpoint.md) and verifies every byte of it. Errors name
  // the file that is wrong, and the remedy where there is one.
  //
  // `precision`: "fp32", "bf16" (convolutions and linear layers in bfloat16) or "auto", what is
  // fastest on this processor. bf16 that it emulates is warned of.
  static absl::StatusOr<Scorer> Open(const std::filesystem::path& model_folder,
                                     absl::string_view precision = "auto");
  Scorer(Scorer&&) noexcept;
  ~Scorer();

  // Returns what was taken and why, "precision fp32 (auto): this processor emulates bf16 (...)";
  // empty where it was named.
  const std::string& precision_taken() const;

  // Returns the `top` most probable classes (all, if there are fewer) of every file, in the files'
  // order. `mirrored`: by the mean of the logits for an image and for its mirror image. A file that
  // cannot be read or is no image has its own error; the others are scored all the same.
  std::vector<FileScore> Score(std::span<const std::string> files, int top, bool mirrored = false);

 private:
  struct Loaded;
  explicit Scorer(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace tutti::scoring
