// Writes a YamlNode tree as YAML text: the inverse of ParseYaml, without comments. Inside the room
// spec only. Pure function; thread-safe.
#pragma once

#include <string>

#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Writes the tree. Texts of several lines stand as blocks; a text that would be read as something
// else is quoted.
std::string YamlText(const YamlNode& root);

}  // namespace tutti::spec
