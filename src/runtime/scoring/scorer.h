// ScoreFiles says of files of images what a model answers. No libtorch in this header.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/image.h"
#include "runtime/scoring/trained_model.h"

namespace tutti::scoring {

struct FileScore {
  std::string file;  // as given
  absl::Status status;
  std::vector<Row> rows;  // most probable first; empty unless status is OK
  std::string mask;       // a PNG; "" where the task has none
};

struct FilesToScore {
  std::vector<std::string> files;
  std::vector<std::string> remarks;  // on files of folders that are no images
};

// Returns `paths` with the images below each folder in its place, sorted, as FOLDER/PATH. NotFound
// names a folder that has none.
absl::StatusOr<FilesToScore> FindFilesToScore(std::span<const std::string> paths);

// Returns what the model says of every file, in the files' order: the `top` most probable rows of
// each (0: five classes, all boxes). `mirrored`: by the mean of the outputs for an image and for
// its mirror image. A file that cannot be read or is no image has its own error; the others are
// scored all the same.
std::vector<FileScore> ScoreFiles(TrainedModel& model, std::span<const std::string> files, int top,
                                  bool mirrored = false);

}  // namespace tutti::scoring
