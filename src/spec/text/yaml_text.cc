#include "spec/text/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include "absl/strings/match.h"

namespace tutti::spec {
namespace {

void Write(const YamlNode& node, YAML::Emitter& out) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      out << YAML::Null;
      return;
    case YamlNode::Kind::kScalar:
      if (absl::StrContains(node.scalar, '\n')) {
        out << YAML::Literal << node.scalar;
      } else if (node.quoted) {
        out << YAML::DoubleQuoted << node.scalar;
      } else {
        out << node.scalar;
      }
      return;
    case YamlNode::Kind::kSequence:
      out << YAML::BeginSeq;
      for (const auto& item : node.items) Write(*item, out);
      out << YAML::EndSeq;
      return;
    case YamlNode::Kind::kMapping:
      out << YAML::BeginMap;
      for (const YamlNode::Entry& entry : node.entries) {
        out << YAML::Key << entry.key << YAML::Value;
        Write(*entry.value, out);
      }
      out << YAML::EndMap;
      return;
  }
}

}  // namespace

std::string YamlText(const YamlNode& root) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  Write(root, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace tutti::spec
