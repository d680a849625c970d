// Reads the inputs and outputs of a job file. Inside the room spec only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"

namespace tutti::spec {

// An input that is refused has no path, of which anything would be said.
std::map<std::string, Input> ReadInputs(MappingReader& job, const ReadContext& context,
                                        Diagnostics& diagnostics);
std::map<std::string, Output> ReadOutputs(MappingReader& job, const ReadContext& context,
                                          Diagnostics& diagnostics,
                                          absl::string_view schema = "command");
// Returns what a component says of one of its inputs: its value where no other is given. Nothing if
// one must be.
std::optional<Input> ReadInputDefinition(const YamlNode::Entry& entry, const ReadContext& context,
                                         Diagnostics& diagnostics);
// Reads the entries of such a section; one output of it, of the type `type` if it says none.
std::map<std::string, Input> ReadInputSection(const YamlNode::Entry& section,
                                              const ReadContext& context, Diagnostics& diagnostics);
Output ReadOutput(const YamlNode::Entry& entry, const ReadContext& context,
                  Diagnostics& diagnostics, absl::string_view schema = "command",
                  absl::string_view type = "uri_folder");

// Reports an error for a section `inputs` or `outputs` that has no names.
void CheckIsMapping(const YamlNode::Entry& section, Diagnostics& diagnostics);

// Returns the mode as inputs have it: in lower case, and by its present name.
std::string InputModeOf(absl::string_view written);

// Returns whether inputs of that type are files or folders, and not values.
bool IsPathType(absl::string_view type);

}  // namespace tutti::spec
