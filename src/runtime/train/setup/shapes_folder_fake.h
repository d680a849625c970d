// Writes a small set of drawn squares and discs with masks or boxes, for tests that train.
#pragma once

#include <filesystem>

#include "runtime/data/dataset.h"

namespace tutti::train {

struct ShapesFolder {
  int train = 64, test = 16;
  int side = 64;  // pixels
};

// Writes a folder as data::OpenAnnotatedFolder reads it; `annotations` kMasks or kBoxes.
void WriteShapes(const std::filesystem::path& folder, data::Annotations annotations,
                 const ShapesFolder& shapes);

}  // namespace tutti::train
