// Reads model.yml, which says of a TorchScript file that tutti did not write what scoring must know
// of it:
//
//   task: classification         # segmentation, detection
//   file: net.pt                 # beside model.yml; may be left out where there is one *.pt
//   classes: [cat, dog]          # by label, or the name of a file with one on each line
//   input:
//     height: 224
//     width: 224
//     layout: nchw               # nhwc: [n, height, width, 3]
//     resize: 256                # as docs/formats/checkpoint.md has them
//     stretch: false
//     mean: [0.485, 0.456, 0.406]
//     stddev: [0.229, 0.224, 0.225]
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/model_folder.h"

namespace tutti::scoring {

struct ForeignModel {
  std::filesystem::path script;
  checkpoint::ModelFolder folder;  // its architecture is "script:FILE"; it has no tensors
  bool channels_last = false;      // the layout nhwc
};

// Returns whether `path` is a model.yml, or a folder with one.
bool IsForeignModel(const std::filesystem::path& path);

// InvalidArgument names file and key.
absl::StatusOr<ForeignModel> ReadForeignModel(const std::filesystem::path& path);

}  // namespace tutti::scoring
