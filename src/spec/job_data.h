// Reads the inputs and outputs of a job file. Inside the room spec only.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/diagnostics.h"
#include "spec/job.h"
#include "spec/mapping_reader.h"
#include "spec/read_context.h"

namespace tutti::spec {

std::map<std::string, Input> ReadInputs(MappingReader& job, const ReadContext& context,
                                        Diagnostics& diagnostics);
std::map<std::string, Output> ReadOutputs(MappingReader& job, Diagnostics& diagnostics);

// A path of the file made absolute: relative ones count from `base`, `file:` URLs are paths.
// InvalidArgument for what lies elsewhere (azureml:, https:, …).
absl::StatusOr<std::string> LocalPath(absl::string_view path, const std::filesystem::path& base);

// Letters, digits and "_", not beginning with a digit: such names become folders and variables.
bool IsIdentifier(absl::string_view name);

}  // namespace tutti::spec
