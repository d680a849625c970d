// Reads a sweep's search_space: what its trials differ in. Inside the room spec only.
#pragma once

#include <optional>

#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/sweep.h"

namespace tutti::spec {

SearchParameter ReadSearchParameter(const YamlNode::Entry& entry, Diagnostics& diagnostics);

// Returns the node's number; nothing if it is no finite number.
std::optional<double> FiniteNumber(const YamlNode& node);

}  // namespace tutti::spec
