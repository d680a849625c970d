// Recognises files that are no jobs, and types of jobs that Azure ML has and tutti does not run,
// and says for each why and what to do in its place. Inside the room spec only. Pure functions;
// thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// A file of another kind than the one that was expected.
struct OtherKind {
  // "a file of kind data, where one of kind job is expected: make it known by `tutti data create
  // --file data.yml`"
  std::string message;
  int line;  // where the file tells it
};

// Turns "https://…/pipelineJob.schema.json" into "pipelinejob.schema.json"; returns "" without a
// $schema.
std::string SchemaOf(const YamlNode& root);

// Recognises a file by its $schema or, without one, by its type and keys. nullopt if it may be of
// kind `expected`: "job", "component", "environment", "conda environment", "data" or "compute".
// `file`: its name, for the advice.
std::optional<OtherKind> OtherKindThan(absl::string_view expected, const YamlNode& root,
                                       absl::string_view file);

// Reports the same as an error. The caller then reads no further: all other errors would be about
// the wrong kind of file.
absl::Status CheckKind(absl::string_view expected, const YamlNode& root, Diagnostics& diagnostics);

// Says why a type of jobs or steps is not run ("it needs a Spark cluster, …"); "" for a type that
// Azure ML does not have.
absl::string_view NotRunBecause(absl::string_view type);

}  // namespace tutti::spec
