#include "spec/data/table_file.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {
namespace {

using PathKind = TablePath::Kind;

constexpr std::array<PathKind, 3> kKinds = {PathKind::kFile, PathKind::kFolder, PathKind::kPattern};

std::optional<PathKind> KindOf(absl::string_view name) {
  for (const PathKind kind : kKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

// One of `paths`: a mapping of one key.
std::optional<TablePath> ReadPath(const YamlNode& node, Diagnostics& diagnostics) {
  const bool is_one = node.kind == YamlNode::Kind::kMapping && node.entries.size() == 1;
  const auto kind = is_one ? KindOf(node.entries[0].key) : std::nullopt;
  if (!kind) {
    diagnostics.Error(node.line,
                      "a path is written \"file: PATH\", \"folder: PATH\" or \"pattern: PATH\"");
    return std::nullopt;
  }
  const YamlNode::Entry& entry = node.entries[0];
  if (entry.value->kind == YamlNode::Kind::kScalar && !entry.value->scalar.empty()) {
    return TablePath{*kind, entry.value->scalar, entry.line};
  }
  diagnostics.Error(entry.line, absl::StrCat(entry.key, " must be a path, but is ",
                                             entry.value->kind == YamlNode::Kind::kScalar
                                                 ? "empty"
                                                 : KindName(*entry.value)));
  return std::nullopt;
}

std::vector<TablePath> ReadPaths(const YamlNode& root, Diagnostics& diagnostics) {
  const YamlNode::Entry* const paths = FindValue(root, "paths");
  if (FindValue(root, "query_source") != nullptr) {
    diagnostics.Error(root.line, "the table is of a query (query_source), and has no files");
    return {};
  }
  if (paths == nullptr || paths->value->kind != YamlNode::Kind::kSequence ||
      paths->value->items.empty()) {
    diagnostics.Error(paths == nullptr ? root.line : paths->line,
                      "the key \"paths\", a list of what the table is of, is missing or empty");
    return {};
  }
  if (paths->value->items.size() > kMostTablePaths) {
    diagnostics.Error(paths->line, absl::StrCat("has more than ", kMostTablePaths,
                                                " paths: name folders, or patterns"));
    return {};
  }
  std::vector<TablePath> read;
  for (const auto& item : paths->value->items) {
    if (auto path = ReadPath(*item, diagnostics)) read.push_back(*std::move(path));
  }
  return read;
}

}  // namespace

absl::string_view Name(PathKind kind) {
  switch (kind) {
    case PathKind::kFile:
      return "file";
    case PathKind::kFolder:
      return "folder";
    case PathKind::kPattern:
      return "pattern";
  }
  return "";
}

absl::StatusOr<std::vector<TablePath>> ReadTable(absl::string_view text,
                                                 absl::string_view file_name) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name, {.bytes = kLargestTableFile}));
  Diagnostics diagnostics(file_name);
  const YamlNode::Entry* const type = FindValue(*root, "type");
  if (root->kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(root->line,
                      absl::StrCat("a table must be a mapping, but is ", KindName(*root)));
  } else if (type != nullptr && type->value->scalar != "mltable") {
    diagnostics.Error(type->line, "the type must be mltable");
  }
  std::vector<TablePath> paths;
  if (root->kind == YamlNode::Kind::kMapping) paths = ReadPaths(*root, diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return paths;
}

}  // namespace tutti::spec
