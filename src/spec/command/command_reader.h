// Reads the keys that say what runs and where: of a command job, and alike of a pipeline's step, a
// component and a sweep's trial, each with its own table of keys. What is wrong goes to the
// diagnostics with the line. Inside the room spec only. Not thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// A mapping and the file in which it stands. What it refers to outlives it.
struct Source {
  const YamlNode& root;
  absl::string_view text;      // of the file; where a part of the command stands is looked up in it
  const ReadContext& context;  // of the file's folder
  Diagnostics& diagnostics;    // under the file's name
};

// Each function reads its keys into `spec`; what they do not name keeps what it was. What is
// refused becomes what no check finds a fault in, since it would be one of the same mistake: no
// compute, an environment of which nothing is known, a command in doubt.
class CommandReader {
 public:
  CommandReader(const Source& source, absl::string_view what, AzureSchemaPath location)
      : source_(source), keys_(source.root, what, source.diagnostics, location) {}

  MappingReader& keys() { return keys_; }

  // Reads name, display_name, experiment_name, description, tags.
  void ReadIdentity(JobSpec& spec);
  // Reads what a component says of itself: its description, its tags, and whether it is
  // deterministic. Its name, version and display name are read and dropped.
  void ReadComponentIdentity(JobSpec& spec);
  // Reads `command`, which must be there.
  void ReadCommand(JobSpec& spec);
  void ReadVariables(JobSpec& spec);
  void ReadCode(JobSpec& spec);
  // Reads additional_includes, which only a component has.
  void ReadIncludes(JobSpec& spec);
  void ReadEnvironmentKey(JobSpec& spec);
  // Reads the compute, which is "" if it is refused.
  void ReadCompute(absl::string_view key, JobSpec& spec);
  // Checks that each ${{…}} of the command and the variables names something that `spec` has.
  void CheckReferences(const JobSpec& spec);
  // Reports the keys that nobody has read. What one of them may have meant is in doubt.
  void Finish(JobSpec& spec);

  const YamlNode::Entry* Find(absl::string_view key) const;
  int LineOfKey(absl::string_view key) const;

 private:
  void CheckEnvironmentVariables(const JobSpec& spec);
  void TakeCompute(absl::string_view key, JobSpec& spec);
  static void Doubt(absl::string_view key, JobSpec& spec);
  int LineOfText(const JobSpec& spec, absl::string_view part) const;

  const Source source_;
  MappingReader keys_;
};

}  // namespace tutti::spec
