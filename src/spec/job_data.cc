#include "spec/job_data.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 2> kPathTypes = {"uri_folder", "uri_file"};
constexpr std::array<absl::string_view, 6> kInputTypes = {"uri_folder", "uri_file", "string",
                                                          "number",     "integer",  "boolean"};
constexpr std::array<absl::string_view, 3> kInputModes = {"ro_mount", "download", "direct"};
constexpr std::array<absl::string_view, 2> kOutputModes = {"rw_mount", "upload"};

// A plain value, as Azure ML puts it into the command: true is "True" there, the rest is as
// written.
Input LiteralInput(const YamlNode& node) {
  Input input;
  input.literal = node.scalar;
  input.mode = "direct";
  int64_t integer;
  double number;
  const std::string lower = absl::AsciiStrToLower(node.scalar);
  if (node.quoted) {
    input.type = "string";
  } else if (lower == "true" || lower == "false") {
    input.type = "boolean";
    input.literal = lower == "true" ? "True" : "False";
  } else if (absl::SimpleAtoi(node.scalar, &integer)) {
    input.type = "integer";
  } else if (absl::SimpleAtod(node.scalar, &number)) {
    input.type = "number";
  } else {
    input.type = "string";
  }
  return input;
}

bool LooksLikeAPath(absl::string_view text) {
  return absl::StartsWith(text, "./") || absl::StartsWith(text, "../") ||
         absl::StartsWith(text, "azureml:") || absl::StrContains(text, "://");
}

// An input that is written out: {type, path, mode}.
Input ReadPathInput(const YamlNode::Entry& entry, const std::filesystem::path& base,
                    Diagnostics& diagnostics) {
  const std::string what = absl::StrCat("input \"", entry.key, "\"");
  Input input;
  MappingReader reader(*entry.value, what, diagnostics);
  const bool typed = reader.Choice("type", kInputTypes, input.type) != nullptr;
  reader.Choice("mode", kInputModes, input.mode);
  std::string path;
  const YamlNode::Entry* path_entry = reader.Text("path", path);
  reader.WarnOf("description", "it is for readers of the file");
  reader.Finish();
  if (typed && std::find(kPathTypes.begin(), kPathTypes.end(), input.type) == kPathTypes.end()) {
    diagnostics.Error(entry.line,
                      absl::StrCat(what, " of type ", input.type,
                                   " is written as a plain value, as in \"", entry.key, ": 3\""));
    return input;
  }
  if (path_entry == nullptr || path.empty()) {
    diagnostics.Error(entry.line, absl::StrCat(what, " has no path"));
    return input;
  }
  input.line = path_entry->line;
  if (const auto local = LocalPath(path, base); local.ok()) {
    input.path = *local;
  } else {
    diagnostics.Error(path_entry->line, absl::StrCat(what, ": ", local.status().message()));
  }
  return input;
}

Input ReadInput(const YamlNode::Entry& entry, const std::filesystem::path& base,
                Diagnostics& diagnostics) {
  if (entry.value->kind == YamlNode::Kind::kMapping) return ReadPathInput(entry, base, diagnostics);
  if (entry.value->kind != YamlNode::Kind::kScalar) {
    diagnostics.Error(
        entry.line, absl::StrCat("input \"", entry.key, "\" must be a value or a mapping, but is ",
                                 KindName(*entry.value)));
    return {};
  }
  if (LooksLikeAPath(entry.value->scalar)) {
    diagnostics.Warning(
        entry.line,
        absl::StrCat("input \"", entry.key, "\" is the plain text \"", entry.value->scalar,
                     "\"; for data at that place write {type: uri_folder, path: ",
                     entry.value->scalar, "}"));
  }
  return LiteralInput(*entry.value);
}

Output ReadOutput(const YamlNode::Entry& entry, Diagnostics& diagnostics) {
  Output output;
  if (entry.value->kind == YamlNode::Kind::kNull) return output;  // `model:` takes the defaults
  MappingReader reader(*entry.value, absl::StrCat("output \"", entry.key, "\""), diagnostics);
  reader.Choice("type", kPathTypes, output.type);
  reader.Choice("mode", kOutputModes, output.mode);
  reader.WarnOf("path", "outputs are kept with the job; `tutti job download` fetches them");
  reader.WarnOf("name", "outputs are not registered as data assets");
  reader.WarnOf("version", "outputs are not registered as data assets");
  reader.WarnOf("description", "it is for readers of the file");
  reader.Finish();
  return output;
}

// The entries of `inputs` or `outputs` whose names are in order.
std::vector<const YamlNode::Entry*> NamedEntries(const YamlNode::Entry& section,
                                                 absl::string_view what, Diagnostics& diagnostics) {
  std::vector<const YamlNode::Entry*> entries;
  if (section.value->kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(section.line, absl::StrCat(section.key, " must be a mapping, but is ",
                                                 KindName(*section.value)));
  }
  for (const YamlNode::Entry& entry : section.value->entries) {
    if (IsIdentifier(entry.key)) {
      entries.push_back(&entry);
    } else {
      diagnostics.Error(entry.line,
                        absl::StrCat(what, " name \"", absl::string_view(entry.key).substr(0, 80),
                                     "\" must be of letters, digits and \"_\", must not begin with "
                                     "a digit, and has at most 128 characters"));
    }
  }
  return entries;
}

}  // namespace

std::map<std::string, Input> ReadInputs(MappingReader& job, const std::filesystem::path& base,
                                        Diagnostics& diagnostics) {
  std::map<std::string, Input> inputs;
  const YamlNode::Entry* section = job.Take("inputs");
  if (section == nullptr) return inputs;
  for (const YamlNode::Entry* entry : NamedEntries(*section, "input", diagnostics)) {
    Input input = ReadInput(*entry, base, diagnostics);
    if (input.line == 0) input.line = entry->line;
    inputs[entry->key] = std::move(input);
  }
  return inputs;
}

std::map<std::string, Output> ReadOutputs(MappingReader& job, Diagnostics& diagnostics) {
  std::map<std::string, Output> outputs;
  const YamlNode::Entry* section = job.Take("outputs");
  if (section == nullptr) return outputs;
  for (const YamlNode::Entry* entry : NamedEntries(*section, "output", diagnostics)) {
    outputs[entry->key] = ReadOutput(*entry, diagnostics);
  }
  return outputs;
}

absl::StatusOr<std::string> LocalPath(absl::string_view path, const std::filesystem::path& base) {
  const absl::string_view written = path;
  if (absl::ConsumePrefix(&path, "file:")) {
    absl::ConsumePrefix(&path, "//localhost");
    if (absl::StartsWith(path, "///")) path.remove_prefix(2);
  }
  const size_t colon = path.find(':');
  const absl::string_view scheme = path.substr(0, colon);
  const bool has_scheme = colon != absl::string_view::npos && scheme.size() > 1 &&
                          std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
                            return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
                          });
  if (has_scheme || absl::StartsWith(path, "//")) {
    return absl::InvalidArgumentError(absl::StrCat("path \"", written.substr(0, 200),
                                                   "\" is not on this machine; give a local file "
                                                   "or folder"));
  }
  std::string absolute = (base / std::string(path)).lexically_normal().string();
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

bool IsIdentifier(absl::string_view name) {
  return !name.empty() && name.size() <= 128 && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

}  // namespace tutti::spec
