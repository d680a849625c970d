// Parses a YAML document into a small tree with line numbers. Made for hostile text: its size,
// depth and the nodes that aliases stand for are bounded, an alias cannot contain itself, and a key
// that comes twice in one mapping is an error. Merge keys (`<<: *base`) have been followed. Inside
// the room spec only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// Immutable once parsed; aliases share nodes.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  struct Entry;

  Kind kind = Kind::kNull;
  int line = 1;  // from 1
  bool quoted = false;
  std::string scalar;
  std::vector<std::shared_ptr<const YamlNode>> items;  // kSequence
  std::vector<Entry> entries;                          // kMapping, in the order of the file
  size_t expanded_size = 1;  // nodes below and itself, aliases written out
};

struct YamlNode::Entry {
  std::string key;
  int line = 1;  // of the key
  std::shared_ptr<const YamlNode> value;
  std::string defined;  // "train.yml:8", where another file says what the value may be
};

struct YamlLimits {
  size_t bytes = 256 * 1024;
  size_t depth = 32;
  size_t nodes = 20'000;
};

// Returns the entry of a mapping that has the key; nullptr if there is none. FindValue: nor where
// it has no value.
const YamlNode::Entry* FindEntry(const YamlNode& node, absl::string_view key);
const YamlNode::Entry* FindValue(const YamlNode& node, absl::string_view key);

// Make nodes that no file has.
std::shared_ptr<const YamlNode> TextNode(absl::string_view text);
std::shared_ptr<const YamlNode> MappingNode(std::vector<YamlNode::Entry> entries, int line = 1);

// Returns "nothing", "text", "a list", "a mapping".
absl::string_view KindName(const YamlNode& node);

// Parses the one document of `text`. InvalidArgument: "FILE:LINE: what is wrong".
absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(absl::string_view text,
                                                          absl::string_view file_name,
                                                          const YamlLimits& limits = {});

}  // namespace tutti::spec
