// Lists the images that a Dockerfile is built from: those of FROM and of COPY --from, but not its
// own stages. A name that a build argument without a default decides is left out. Pure; any text is
// safe.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::container {

struct BaseImage {
  std::string reference;  // as the file has it, its ARGs replaced by their defaults
  int line = 0;           // of the instruction
};

// Lists the base images in the file's order, each reference once.
std::vector<BaseImage> BaseImagesOf(absl::string_view dockerfile);

}  // namespace tutti::container
