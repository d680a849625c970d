// Components: what a step runs, in a file of its own (Azure ML's command and pipeline component
// schemas). Inside the room spec only.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "spec/diagnostics.h"
#include "spec/job.h"
#include "spec/read_context.h"
#include "spec/yaml_tree.h"

namespace tutti::spec {

struct ComponentFile {
  std::string shown;  // as messages call it
  std::filesystem::path folder;
  std::string text;
  std::shared_ptr<const YamlNode> root;
};

// What `entry` (component: ./train.yml, azureml:train:1, azureml:train@latest, or a registry's
// address) refers to. Nothing, and an error with the entry's line, if it cannot be had.
std::optional<ComponentFile> FindComponent(const YamlNode::Entry& entry, const ReadContext& context,
                                           Diagnostics& diagnostics);

// The values that a step gives, put into what its component says of its inputs: one section, to be
// read as a job's `inputs`. `definitions` and `given` may be null. Inputs in `elsewhere` get their
// value in another way and are left out. A value of no input of the component is an error.
YamlNode::Entry MergedInputs(const YamlNode::Entry* definitions, const YamlNode::Entry* given,
                             const std::set<std::string>& elsewhere, int line,
                             const std::string& component, Diagnostics& diagnostics);

}  // namespace tutti::spec
