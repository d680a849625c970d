// Reads a sweep's search_space: what its trials differ in. Inside the room spec only.
#pragma once

#include <optional>

#include "spec/diagnostics.h"
#include "spec/sweep.h"
#include "spec/yaml_tree.h"

namespace tutti::spec {

SearchParameter ReadSearchParameter(const YamlNode::Entry& entry, Diagnostics& diagnostics);

// Nothing if the node is no finite number.
std::optional<double> FiniteNumber(const YamlNode& node);

}  // namespace tutti::spec
