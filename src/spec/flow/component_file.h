// Finds and reads components: what a step runs, in a file of its own (Azure ML's command and
// pipeline component schemas). Inside the room spec only.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "spec/command/command_reader.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct ComponentFile {
  std::string shown;  // its file, for a place in it: "train.yml"
  std::string name;   // as messages call it: "component train.yml", "the component of step "a""
  std::filesystem::path folder;
  std::string text;
  std::shared_ptr<const YamlNode> root;
};

// Returns what `entry` of `source` (component: ./train.yml, azureml:train:1, azureml:train@latest,
// a registry's address, or the component itself, written out) refers to. Nothing, and an error with
// the entry's line in `diagnostics`, if it cannot be had. `what`: whose it is, "step "a"".
std::optional<ComponentFile> FindComponent(const YamlNode::Entry& entry, absl::string_view what,
                                           const Source& source, Diagnostics& diagnostics);

// Returns "pipeline" or "command": what the component says, else by what it has.
std::string TypeOf(const ComponentFile& component);

// Returns the inputs that a component has, with the values that a step of `source`, at `line`,
// gives. Both sections may be null. Inputs in `elsewhere` get their value in another way and are
// left out. What is wrong with what the component says goes to `of_component`, and nothing more is
// said of that input; what is wrong with the values goes to the diagnostics of `source`.
std::map<std::string, Input> ReadComponentInputs(const ComponentFile& component,
                                                 const YamlNode::Entry* definitions,
                                                 const YamlNode::Entry* given,
                                                 const std::set<std::string>& elsewhere, int line,
                                                 const Source& source, Diagnostics& of_component);

}  // namespace tutti::spec
