// Has what the readers of Batch AI's files share: JSON with lines, and nodes of the job file that
// is written. Inside the room spec only. Pure functions, safe on hostile text;
// thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

using YamlPointer = std::shared_ptr<const YamlNode>;

// Parses JSON as the YAML that it is, so that each key has its line. What JSON has and YAML has not
// is changed before: tabs that indent, and escapes of two halves (\ud83d\ude00).
absl::StatusOr<YamlPointer> ParseJsonWithLines(absl::string_view text, absl::string_view file_name);

// Returns the file's "properties"; reports an error where there are none.
const YamlNode* PropertiesOf(const YamlNode& root, absl::string_view kind,
                             Diagnostics& diagnostics);

// Returns the items of a list under `key`; an empty list where it is absent.
std::vector<YamlPointer> TakeList(MappingReader& reader, absl::string_view key,
                                  Diagnostics& diagnostics);

// Takes a key that is accepted and changes nothing: a warning says why.
void TakeWithoutEffect(MappingReader& reader, absl::string_view key, absl::string_view why,
                       Diagnostics& diagnostics);

// Reads the text of a key that must be there; reports an error about `what` where it is not.
const YamlNode::Entry* TakeNeeded(MappingReader& reader, const YamlNode& node,
                                  absl::string_view what, absl::string_view key, std::string& value,
                                  Diagnostics& diagnostics);

// Returns the last part of a resource's id: "nc6" of "/subscriptions/…/clusters/nc6".
std::string NameOfResource(absl::string_view id);

// Reads {"id": "/subscriptions/…/NAME"} as NAME; "" where there is none.
std::string TakeResource(MappingReader& reader, absl::string_view key, Diagnostics& diagnostics);

// Returns a duration as .NET ("7.00:00:00", "01:30:00") or ISO 8601 ("P7D", "PT1H30M") writes it.
std::optional<absl::Duration> ReadTimeSpan(absl::string_view text);

// Returns "a/b/c" of "/a//b/./c/"; nothing if it leads out of where it is.
std::optional<std::string> CleanPath(absl::string_view path);
// Returns a path as a URL has it: percent-encoded.
std::string EncodedPath(absl::string_view path);

// Returns a node that stays a text however it looks ("5", "true").
YamlPointer QuotedNode(absl::string_view text);
void AddEntry(std::vector<YamlNode::Entry>& entries, absl::string_view key, YamlPointer value);

}  // namespace tutti::spec
