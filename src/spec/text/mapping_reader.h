// Reads the keys of one YAML mapping by name and type; what nobody asked for is an unknown key.
// Errors go to a Diagnostics with the line of the key; a value that is wrong leaves its target as
// it was. A key without a value counts as absent. Inside the room spec only. Not thread-safe.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Where in Azure ML's schemas a mapping stands: "resources." of "command" (azure_keys.h).
struct AzureSchemaPath {
  absl::string_view schema;  // empty: the mapping is tutti's own
  absl::string_view prefix;
};

class MappingReader {
 public:
  // A `node` that is no mapping is an error about `what` and reads as empty. All arguments outlive
  // this.
  MappingReader(const YamlNode& node, absl::string_view what, Diagnostics& diagnostics,
                AzureSchemaPath schema_path = {});

  // Returns the entry of `key`; nullptr if the key is absent or has no value.
  const YamlNode::Entry* Take(absl::string_view key);
  // Returns where the text is, nullptr if there is none.
  const YamlNode::Entry* Text(absl::string_view key, std::string& value);
  // Reads one of `choices`, in any case; written in lower case to `value`.
  const YamlNode::Entry* Choice(absl::string_view key, std::span<const absl::string_view> choices,
                                std::string& value);
  // Reads a whole number from 1 to `most`.
  const YamlNode::Entry* Count(absl::string_view key, int most, int& value);
  void TextMap(absl::string_view key, std::map<std::string, std::string>& value);
  const YamlNode::Entry* Flag(absl::string_view key, bool& value);
  // Returns a list of texts; one text stands for a list of it alone.
  const YamlNode::Entry* Texts(absl::string_view key, std::vector<std::string>& value);

  // Reports the keys that were not taken: a warning or an error by the table of Azure ML's keys, or
  // that the key is unknown. Returns for each unknown key the one that was perhaps meant, "" if
  // none is near.
  std::vector<std::string> Finish();

 private:
  void ReportUntaken(const YamlNode::Entry& entry, std::vector<std::string>& meant);

  const YamlNode& node_;
  Diagnostics& diagnostics_;
  const AzureSchemaPath schema_path_;
  std::vector<absl::string_view> known_;
};

}  // namespace tutti::spec
