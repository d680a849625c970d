#include "spec/text/preview_mark.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {
namespace {

std::optional<PreviewMark> MarkOfSections(const YamlNode& job) {
  const auto below = [&](absl::string_view section,
                         absl::string_view key) -> const YamlNode::Entry* {
    const YamlNode::Entry* entry = FindEntry(job, section);
    if (entry == nullptr) return nullptr;
    for (const YamlNode::Entry& item : entry->value->entries) {
      if (const YamlNode::Entry* found = FindEntry(*item.value, key)) return found;
    }
    return nullptr;
  };
  if (const auto* data = below("inputs", "data"))
    return PreviewMark{data->line, "inputs: {…: {data: …}}"};
  if (const auto* dataset = below("inputs", "dataset"))
    return PreviewMark{dataset->line, "inputs: {…: {dataset: …}}"};
  for (const char* section : {"inputs", "outputs"}) {
    const YamlNode::Entry* entry = FindEntry(job, section);
    if (entry == nullptr) continue;
    for (const YamlNode::Entry& item : entry->value->entries) {
      if (!absl::StrContains(item.value->scalar, "$${{")) continue;
      return PreviewMark{item.line, absl::StrCat(section, ": {…: $${{…}}}")};
    }
  }
  const YamlNode::Entry* const command = FindEntry(job, "command");
  if (command != nullptr && absl::StrContains(command->value->scalar, "$${{")) {
    return PreviewMark{command->line, "command: … $${{…}}"};
  }
  if (const auto* spec = below("search_space", "spec")) {
    return PreviewMark{spec->line, "search_space: {…: {spec: …}}"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<PreviewMark> FindPreviewMark(const YamlNode& root) {
  struct Pair {
    absl::string_view section, key;
  };
  for (const auto& [section, key] :
       {Pair{"code", "local_path"}, {"compute", "target"}, {"environment", "docker"}}) {
    const YamlNode::Entry* entry = FindEntry(root, section);
    if (entry != nullptr && FindEntry(*entry->value, key) != nullptr) {
      return PreviewMark{entry->line, absl::StrCat(section, ": {", key, ": …}")};
    }
  }
  if (const YamlNode::Entry* type = FindEntry(root, "type")) {
    for (const absl::string_view old :
         {"command_job", "sweep_job", "pipeline_job", "component_job"}) {
      if (absl::EqualsIgnoreCase(type->value->scalar, old)) {
        return PreviewMark{type->line, absl::StrCat("type: ", old)};
      }
    }
  }
  if (const auto mark = MarkOfSections(root)) return mark;
  if (const YamlNode::Entry* trial = FindEntry(root, "trial"))
    return FindPreviewMark(*trial->value);
  const YamlNode::Entry* jobs = FindEntry(root, "jobs");
  if (jobs == nullptr) return std::nullopt;
  for (const YamlNode::Entry& step : jobs->value->entries) {
    if (const auto mark = FindPreviewMark(*step.value)) return mark;
  }
  return std::nullopt;
}

}  // namespace tutti::spec
