#include "spec/flow/component_file.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/environment/package_files.h"
#include "spec/text/other_kinds.h"

namespace tutti::spec {
namespace {

bool IsPath(absl::string_view reference) {
  return absl::StartsWith(reference, "file:") || absl::StartsWith(reference, ".") ||
         absl::StartsWith(reference, "/") ||
         (!absl::StartsWith(reference, "azureml:") &&
          (absl::EndsWith(reference, ".yml") || absl::EndsWith(reference, ".yaml")));
}

// Where the component lies; an error if nobody has given one that name.
std::optional<NamedFile> Locate(const YamlNode::Entry& entry, const ReadContext& context,
                                Diagnostics& diagnostics) {
  absl::string_view written = entry.value->scalar;
  if (IsPath(written)) {
    absl::ConsumePrefix(&written, "file:");
    absl::ConsumePrefix(&written, "./");
    return FileBeside(written, context);
  }
  const AssetReference reference = ReferenceOf(AssetKind::kComponent, written);
  bool registered = false;
  const auto asset = context.site.component_assets.Find(reference, &registered);
  if (asset.ok()) {
    return NamedFile{absl::StrCat("azureml:", asset->name, ":", asset->version), asset->path};
  }
  const auto& known = context.site.components;
  for (const std::string& key :
       {absl::StrCat(reference.name, ":", reference.version), reference.name}) {
    if (const auto found = known.find(key); found != known.end()) {
      if (const absl::Status label = CheckLabel(AssetKind::kComponent, reference); !label.ok()) {
        diagnostics.Error(entry.line, absl::StrCat(entry.key, ": ", label.message()));
        return std::nullopt;
      }
      return NamedFile{found->second, found->second};
    }
  }
  if (registered) {
    diagnostics.Error(entry.line, absl::StrCat(entry.key, ": ", asset.status().message()));
    return std::nullopt;
  }
  std::vector<absl::string_view> names;
  for (const auto& [key, path] : known) names.push_back(key);
  for (const auto& [key, versions] : context.site.component_assets.assets()) names.push_back(key);
  diagnostics.Error(entry.line,
                    absl::StrCat("component \"", written.substr(0, 120), "\" is not known here",
                                 base::DidYouMean(reference.name.substr(0, 80), names),
                                 "; make it known by its file: tutti component create --file FILE, "
                                 "or say in site.yml where that is: components: {",
                                 reference.name, ": PATH}"));
  return std::nullopt;
}

// In a section that may not be there.
const YamlNode::Entry* FindIn(const YamlNode::Entry* section, absl::string_view key) {
  return section == nullptr ? nullptr : FindEntry(*section->value, key);
}

std::string TypeOf(const YamlNode::Entry& input) {
  const YamlNode::Entry* type = FindEntry(*input.value, "type");
  return type == nullptr ? "" : type->value->scalar;
}

// The keys by which a component says what an input may be; the others have been told of where they
// stand.
bool IsDefinition(absl::string_view key) {
  static constexpr std::array<absl::string_view, 9> kKeys = {
      "type", "mode", "path", "default", "value", "optional", "min", "max", "enum"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

// Joins the two: the step's value counts, and what it leaves open is as the component says.
YamlNode::Entry Merged(const YamlNode::Entry& definition, const YamlNode::Entry& given) {
  YamlNode::Entry written{IsPathType(TypeOf(definition)) ? "path" : "value", given.line,
                          given.value};
  const bool is_mapping = given.value->kind == YamlNode::Kind::kMapping;
  const auto step = is_mapping ? given.value : MappingNode({std::move(written)});
  std::vector<YamlNode::Entry> entries = step->entries;
  for (const YamlNode::Entry& key : definition.value->entries) {
    if (!IsDefinition(key.key) || FindEntry(*step, key.key) != nullptr) continue;
    entries.push_back(key);
    entries.back().line = given.line;  // lines are of the step's file
  }
  return {given.key, given.line, MappingNode(std::move(entries), given.line)};
}

const std::vector<YamlNode::Entry>& EntriesOf(const YamlNode::Entry* section) {
  static const auto* const none = new std::vector<YamlNode::Entry>();
  return section == nullptr ? *none : section->value->entries;
}

void CheckNames(const YamlNode::Entry* definitions, const YamlNode::Entry* given,
                const ComponentFile& component, Diagnostics& diagnostics) {
  std::vector<absl::string_view> names;
  for (const YamlNode::Entry& entry : EntriesOf(definitions)) names.push_back(entry.key);
  for (const YamlNode::Entry& entry : EntriesOf(given)) {
    if (FindIn(definitions, entry.key) != nullptr) continue;
    const std::string shown = entry.key.substr(0, 80);
    const std::string meant = base::DidYouMean(shown, names);
    const std::string said = absl::StrCat(component.name, " has no input \"", shown, "\"");
    if (meant.empty()) {  // Azure ML passes over it
      diagnostics.Warning(entry.line, absl::StrCat(said, "; it is not used"));
    } else {
      diagnostics.Error(entry.line, absl::StrCat(said, meant));
    }
  }
}

// Reads what a step gives to an input that its component defines.
Input ReadGiven(const YamlNode::Entry& definition, const YamlNode::Entry& given,
                const ComponentFile& component, const Source& source) {
  YamlNode::Entry merged = Merged(definition, given);
  merged.defined =
      absl::StrCat(component.shown, ":", definition.line,
                   given.defined.empty() ? "" : "; the value is given at ", given.defined);
  const YamlNode::Entry inputs{"inputs", given.line, MappingNode({std::move(merged)})};
  return ReadInputSection(inputs, source.context, source.diagnostics)[definition.key];
}

}  // namespace

std::optional<ComponentFile> FindComponent(const YamlNode::Entry& entry, absl::string_view what,
                                           const Source& source, Diagnostics& diagnostics) {
  if (entry.value->kind == YamlNode::Kind::kMapping) {
    return ComponentFile{source.diagnostics.file_name(), absl::StrCat("the component of ", what),
                         source.context.base, std::string(source.text), entry.value};
  }
  if (entry.value->kind != YamlNode::Kind::kScalar) {
    diagnostics.Error(entry.line, absl::StrCat(entry.key, " must name a component's file, but is ",
                                               KindName(*entry.value)));
    return std::nullopt;
  }
  const auto file = Locate(entry, source.context, diagnostics);
  if (!file) return std::nullopt;
  auto text = source.context.Read(file->path);
  const auto root = text.ok() ? ParseYaml(*text, file->shown) : text.status();
  if (!root.ok()) {
    diagnostics.Error(entry.line, absl::StrCat(entry.key, ": ", root.status().message()));
    return std::nullopt;
  }
  if ((*root)->kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(entry.line, absl::StrCat(entry.key, ": ", file->shown,
                                               " must be a mapping, but is ", KindName(**root)));
    return std::nullopt;
  }
  if (const auto other = OtherKindThan("component", **root, file->shown)) {
    diagnostics.Error(entry.line,
                      absl::StrCat(entry.key, ": ", file->shown, " is ", other->message));
    return std::nullopt;
  }
  return ComponentFile{file->shown, absl::StrCat("component ", file->shown),
                       file->path.parent_path(), *std::move(text), *root};
}

std::string TypeOf(const ComponentFile& component) {
  if (const YamlNode::Entry* type = FindEntry(*component.root, "type")) {
    return type->value->scalar == "pipeline" ? "pipeline" : "command";
  }
  return FindEntry(*component.root, "jobs") != nullptr ? "pipeline" : "command";
}

std::map<std::string, Input> ReadComponentInputs(const ComponentFile& component,
                                                 const YamlNode::Entry* definitions,
                                                 const YamlNode::Entry* given,
                                                 const std::set<std::string>& elsewhere, int line,
                                                 const Source& source, Diagnostics& of_component) {
  if (definitions != nullptr) CheckIsMapping(*definitions, of_component);
  CheckNames(definitions, given, component, source.diagnostics);
  std::map<std::string, Input> inputs;
  for (const YamlNode::Entry& entry : EntriesOf(definitions)) {
    Diagnostics own(component.shown);
    const std::optional<Input> standard = ReadInputDefinition(entry, source.context, own);
    const bool is_sound = own.status().ok();
    of_component.Add(entry.line, own);
    if (elsewhere.contains(entry.key)) continue;
    Input& input = inputs[entry.key];
    const YamlNode::Entry* value = FindIn(given, entry.key);
    const bool is_given = value != nullptr && value->value->kind != YamlNode::Kind::kNull;
    if (is_sound && is_given) {
      input = ReadGiven(entry, *value, component, source);
    } else if (standard) {
      input = *standard;
    } else if (is_sound) {
      source.diagnostics.Error(
          value == nullptr ? line : value->line,
          absl::StrCat("input \"", entry.key, "\" has no ",
                       IsPathType(TypeOf(entry)) ? "path" : "value", ", which ", component.name,
                       " needs: see ", component.shown, ":", entry.line));
    }
  }
  return inputs;
}

}  // namespace tutti::spec
