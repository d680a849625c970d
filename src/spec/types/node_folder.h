// Parses the folder of a compute of type slurm whose nodes share none: "node:/tmp" is /tmp on the
// own disk of each node, which sees nothing of this machine's files.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns the path on the nodes; nullopt for a folder that they share with this machine.
std::optional<std::string> NodeFolder(absl::string_view folder);

}  // namespace tutti::spec
