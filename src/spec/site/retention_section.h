// Reads the key `retention` of site.yml. Inside the room spec only.
#pragma once

#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/retention.h"

namespace tutti::spec {

// Reads the section. What it does not name stays as it is in `retention`.
void ReadRetention(const YamlNode::Entry& section, Diagnostics& diagnostics, Retention& retention);

}  // namespace tutti::spec
