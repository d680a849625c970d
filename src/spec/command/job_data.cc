#include "spec/command/job_data.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "spec/command/output_place.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/site/data_finder.h"
#include "spec/text/expressions.h"
#include "spec/text/unbound.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 7> kPathTypes = {
    "uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model", "path"};
constexpr std::array<absl::string_view, 11> kInputTypes = {
    "uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model",
    "path",       "string",   "number",  "integer",      "boolean"};
constexpr std::array<absl::string_view, 6> kInputModes = {
    "ro_mount", "download", "direct", "mount", "eval_mount", "eval_download"};
constexpr std::array<absl::string_view, 4> kOutputModes = {"rw_mount", "upload", "mount", "direct"};

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

// An error for what looks like a binding: what stands whole in a step's inputs has been bound
// before, and values that are known have been put in place.
bool RefuseUnbound(int line, absl::string_view what, absl::string_view written,
                   Diagnostics& diagnostics) {
  const std::string unbound = BindingIn(written);
  if (unbound.empty()) return false;
  std::string why;
  if (absl::StartsWith(unbound, "search_space.")) {
    why = "; a sweep's trial has its parameters as inputs of their names: leave this one out";
  } else if (!absl::StartsWith(unbound, "parent.")) {
    why =
        ", but an input takes no value from another here: only a command and "
        "environment_variables name inputs and outputs";
  } else if (WholeExpression(written).empty() && absl::StrContains(written, "${{")) {
    diagnostics.Error(line, absl::StrCat(what, ": within a text ${{", unbound,
                                         "}} must be a plain value that the pipeline has; to "
                                         "anything else all of the input is bound"));
    return true;
  } else {
    why = ", but there is no pipeline around the job";
  }
  diagnostics.Error(line, absl::StrCat(what, " is ", written.substr(0, 120), why));
  return true;
}

bool LooksLikeAPath(absl::string_view text) {
  return absl::StartsWith(text, "./") || absl::StartsWith(text, "../") ||
         absl::StartsWith(text, "azureml:") || absl::StrContains(text, "://");
}

// Reads one input that is written out as a mapping.
class InputReader {
 public:
  InputReader(const YamlNode::Entry& entry, const ReadContext& context, Diagnostics& diagnostics)
      : entry_(entry),
        what_(absl::StrCat("input \"", entry.key, "\"")),
        context_(context),
        diagnostics_(diagnostics),
        reader_(*entry.value, what_, diagnostics, {"command", "inputs.*."}) {}

  Input Read() { return ReadValue(ReadKeys()); }

  // Nothing if the value is to be given elsewhere.
  std::optional<Input> ReadDefinition() {
    const YamlNode::Entry* path = ReadKeys();
    if (path == nullptr && value_ == nullptr && !optional_) return std::nullopt;
    return ReadValue(path);
  }

 private:
  // All but the value. Returns where the path is.
  const YamlNode::Entry* ReadKeys() {
    typed_ = reader_.Choice("type", kInputTypes, input_.type) != nullptr;
    if (input_.type == "path") input_.type = "uri_folder";  // its old name
    ReadMode();
    const YamlNode::Entry* path = reader_.Take("path");
    value_ = reader_.Take("default");
    if (const YamlNode::Entry* value = reader_.Take("value")) value_ = value;
    reader_.Flag("optional", optional_);
    reader_.Take("description");
    ReadBounds();
    reader_.Finish();
    return path;
  }

  Input ReadValue(const YamlNode::Entry* path) {
    if (path == nullptr && value_ == nullptr && optional_) {
      input_.absent = true;
    } else if (path != nullptr || (IsPathType(input_.type) && typed_)) {
      ReadPath(path != nullptr ? path : value_);
    } else {
      ReadLiteral();
    }
    CheckMode(std::max(entry_.line, input_.location.line));  // data by name have a type by now
    return std::move(input_);
  }

  void ReadMode() {
    const YamlNode::Entry* entry = reader_.Choice("mode", kInputModes, input_.mode);
    input_.mode = InputModeOf(input_.mode);
    if (typed_) CheckMode(entry == nullptr ? 0 : entry->line);
  }

  void CheckMode(int line) {
    if (!IsEvaluated(input_) || input_.type == "mltable") return;
    diagnostics_.Error(line,
                       absl::StrCat(what_, ": mode ", input_.mode,
                                    " is of type mltable alone, and it is of type ", input_.type));
    input_.mode = "ro_mount";  // of which nothing more is said
  }

  void ReadBounds() {
    std::string text;
    double number = 0;
    for (const char* key : {"min", "max"}) {
      const YamlNode::Entry* entry = reader_.Text(key, text);
      if (entry == nullptr) continue;
      if (!absl::SimpleAtod(text, &number)) {
        diagnostics_.Error(entry->line, absl::StrCat(key, " must be a number"));
      } else {
        (key[1] == 'i' ? least_ : most_) = number;
      }
    }
    reader_.Texts("enum", choices_);
  }

  void ReadLiteral() {
    if (value_ == nullptr) {
      diagnostics_.Error(entry_.line,
                         typed_ && !IsPathType(input_.type)
                             ? absl::StrCat(what_, " has no value: write \"", entry_.key,
                                            ": VALUE\", or give it a default")
                             : absl::StrCat(what_, " has no path"));
      return;
    }
    if (value_->value->kind != YamlNode::Kind::kScalar) {
      diagnostics_.Error(value_->line, absl::StrCat(what_, ": the value must be text, but is ",
                                                    KindName(*value_->value)));
      return;
    }
    const std::string type = input_.type;
    input_ = LiteralInput(*value_->value);
    input_.location.line = value_->line;
    if (typed_) input_.type = type;
    if (!RefuseUnbound(value_->line, what_, input_.literal, diagnostics_)) CheckLiteral();
  }

  // With where a component says so, if it does.
  std::string OfValue(absl::string_view why) const {
    return absl::StrCat(what_, " is \"", input_.literal.substr(0, 80), "\"", why,
                        entry_.defined.empty() ? "" : ": see ", entry_.defined);
  }

  void Refuse(absl::string_view why) { diagnostics_.Error(input_.location.line, OfValue(why)); }

  void CheckLiteral() {
    double number = 0;
    int64_t whole = 0;
    const bool is_number = absl::SimpleAtod(input_.literal, &number);
    if (input_.type == "boolean") {
      const std::string lower = absl::AsciiStrToLower(input_.literal);
      if (lower != "true" && lower != "false") {
        Refuse(", which is no boolean (write true or false)");
      }
    } else if (input_.type == "integer" && !absl::SimpleAtoi(input_.literal, &whole)) {
      Refuse(", which is no whole number");
    } else if (input_.type == "number" && !is_number) {
      Refuse(", which is no number");
    } else if (is_number && number < least_) {
      Refuse(absl::StrCat(", which is less than ", least_));
    } else if (is_number && number > most_) {
      Refuse(absl::StrCat(", which is more than ", most_));
    }
    if (!choices_.empty() &&
        std::find(choices_.begin(), choices_.end(), input_.literal) == choices_.end()) {
      // Azure ML holds no job to its enum, and published files rely on that.
      diagnostics_.Warning(
          input_.location.line,
          OfValue(absl::StrCat(", which is none of ", absl::StrJoin(choices_, ", "))));
    }
  }

  void ReadPath(const YamlNode::Entry* entry) {
    if (typed_ && !IsPathType(input_.type)) {
      diagnostics_.Error(
          entry_.line, absl::StrCat(what_, " of type ", input_.type,
                                    " is written as a plain value, as in \"", entry_.key, ": 3\""));
      return;
    }
    if (entry == nullptr || entry->value->scalar.empty()) {
      diagnostics_.Error(entry_.line, absl::StrCat(what_, " has no path"));
      return;
    }
    input_.location.line = entry->line;
    const std::string& written = entry->value->scalar;
    if (!RefuseUnbound(entry->line, what_, written, diagnostics_)) Locate(written);
  }

  // A path, an earlier job's output, or an address of which there is a copy here.
  void Locate(const std::string& by_user) {
    if (HasUser(by_user)) {
      return Error(
          absl::StrCat("\"", ShownAddress(by_user),
                       "\" has a user or a password, which would be kept with the job, and "
                       "shown: write an address with a signature, which is kept as a "
                       "secret, or copy it here and write its path"));
    }
    const auto model = ResolveModel(by_user, input_.type, context_.site);
    if (!model.ok()) return Error(model.status().message());
    if (*model) return TakeModel(**model);
    const auto resolved = ResolveAsset(by_user, context_.site);
    if (!resolved.ok()) {
      diagnostics_.Error(input_.location.line,
                         absl::StrCat(what_, ": ", resolved.status().message()));
      return;
    }
    if (!typed_ && !resolved->type.empty()) input_.type = resolved->type;
    input_.asset = resolved->asset;
    const std::string& written = resolved->address;
    const auto here = FindHere(written, input_.type, context_.data_base(), context_.site);
    if (here.ok()) {
      if (!here->pattern.empty() && !MayBePattern()) return;
      input_.path = here->path;
      input_.pattern = here->pattern;
      input_.job_folder = here->job_folder;
    } else if (absl::IsNotFound(here.status())) {
      LocateElsewhere(written);
    } else {
      Error(here.status().message());
    }
  }

  void TakeModel(const NamedModel& named) {
    if (!typed_ && !named.model.type.empty()) input_.type = named.model.type;
    input_.path = named.model.path;
    input_.asset = named.asset;
  }

  void Error(absl::string_view why) {
    diagnostics_.Error(input_.location.line, absl::StrCat(what_, ": ", why));
  }

  // An address of which there is no copy here.
  void LocateElsewhere(const std::string& written) {
    auto place = PlaceOf(written, context_.site.datastores);
    const bool is_store = place.ok() && place->has_value();
    const std::string web = WebAddress(written);
    if (input_.mode == "direct" && IsSigned(written)) {
      Error(absl::StrCat("the signature of \"", ShownAddress(written),
                         "\" would stand in the job's command line: leave mode: direct out, or "
                         "give it to a datastore as its sas_token and name that "
                         "(tutti datastore create --file FILE)"));
    } else if (input_.mode == "direct") {
      input_.literal = written;  // the program reads it by itself
      // With the datastore's credentials, by its launcher.
      if (is_store && !(*place)->datastore.empty() && !(*place)->is_pattern) {
        input_.place = *std::move(*place);
      }
    } else if (is_store &&
               (!(*place)->datastore.empty() || input_.type != "uri_file" || web.empty())) {
      TakePlace(*std::move(*place));
    } else if (input_.type == "uri_file" && !web.empty()) {
      input_.path = web;  // each node fetches it
    } else if (absl::IsInvalidArgument(place.status())) {
      Error(place.status().message());
    } else {
      Error(absl::StrCat(
          "\"", ShownAddress(written), "\" is not on this machine",
          web.empty() ? "" : ", and a folder cannot be listed there",
          !web.empty() && LooksLikeAFile(written) ? " (a file has type: uri_file)" : "",
          absl::IsNotFound(place.status()) ? absl::StrCat(": ", place.status().message()) : "",
          "; ", AdviceToMap(written)));
    }
  }

  // Checks that the type can be a pattern's, whose matches the job gets as a folder.
  bool MayBePattern() {
    if (input_.type == "mltable") Error("a table is one folder, and the address is a pattern");
    if (input_.type == "uri_file") {
      Error("a pattern stands for several files, in a folder: its type is uri_folder");
    }
    return input_.type != "mltable" && input_.type != "uri_file";
  }

  // Each node fetches it from its store.
  void TakePlace(DataPlace place) {
    if (place.is_pattern && !MayBePattern()) return;
    if (input_.type == "uri_file" && place.path.empty()) {
      return Error("its type is uri_file, but the address names all that the container holds");
    }
    input_.place = std::move(place);
  }

  const YamlNode::Entry& entry_;
  const std::string what_;
  const ReadContext& context_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
  Input input_;
  bool typed_ = false;
  bool optional_ = false;
  const YamlNode::Entry* value_ = nullptr;
  double least_ = -std::numeric_limits<double>::infinity();
  double most_ = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices_;
};

Input ReadInput(const YamlNode::Entry& entry, const ReadContext& context,
                Diagnostics& diagnostics) {
  if (entry.value->kind == YamlNode::Kind::kMapping) {
    return InputReader(entry, context, diagnostics).Read();
  }
  if (entry.value->kind != YamlNode::Kind::kScalar) {
    diagnostics.Error(
        entry.line, absl::StrCat("input \"", entry.key, "\" must be a value or a mapping, but is ",
                                 KindName(*entry.value)));
    return {};
  }
  if (LooksLikeAPath(entry.value->scalar)) {
    const std::string shown = ShownAddress(entry.value->scalar);
    const absl::string_view type = LooksLikeAFile(entry.value->scalar) ? "uri_file" : "uri_folder";
    diagnostics.Warning(entry.line, absl::StrCat("input \"", entry.key, "\" is the plain text \"",
                                                 shown, "\"; for data at that place write {type: ",
                                                 type, ", path: ", shown, "}"));
  }
  RefuseUnbound(entry.line, absl::StrCat("input \"", entry.key, "\""), entry.value->scalar,
                diagnostics);
  return LiteralInput(*entry.value);
}

// Leaves an input that was refused no place, of which more would be said.
void Forget(Input& input) {
  input.path.clear();
  input.place.reset();
}

// The last part of an output's path, which names the file; "" if it is no name for one.
std::string FileName(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  const bool safe = !name.empty() && name.size() <= 128 && name != "." && name != ".." &&
                    name.find_first_of(":\\") == absl::string_view::npos &&
                    !absl::StrContains(name, "${{");
  return safe ? std::string(name) : "";
}

// False with an error if an input or output cannot be called so.
bool CheckName(const YamlNode::Entry& entry, absl::string_view what, Diagnostics& diagnostics) {
  if (IsIdentifier(entry.key)) return true;
  diagnostics.Error(entry.line,
                    absl::StrCat(what, " name \"", absl::string_view(entry.key).substr(0, 80),
                                 "\" must be of letters, digits and \"_\", must not begin with a "
                                 "digit, and has at most 128 characters"));
  return false;
}

// The entries of `inputs` or `outputs` whose names are in order.
std::vector<const YamlNode::Entry*> NamedEntries(const YamlNode::Entry& section,
                                                 absl::string_view what, Diagnostics& diagnostics) {
  std::vector<const YamlNode::Entry*> entries;
  CheckIsMapping(section, diagnostics);
  for (const YamlNode::Entry& entry : section.value->entries) {
    if (CheckName(entry, what, diagnostics)) entries.push_back(&entry);
  }
  return entries;
}

}  // namespace

void CheckIsMapping(const YamlNode::Entry& section, Diagnostics& diagnostics) {
  if (section.value->kind == YamlNode::Kind::kMapping) return;
  diagnostics.Error(section.line, absl::StrCat(section.key, " must be a mapping, but is ",
                                               KindName(*section.value)));
}

std::string InputModeOf(absl::string_view written) {
  std::string mode = absl::AsciiStrToLower(written);
  return mode == "mount" ? "ro_mount" : mode;
}

bool IsPathType(absl::string_view type) {
  return std::find(kPathTypes.begin(), kPathTypes.end(), type) != kPathTypes.end();
}

Output ReadOutput(const YamlNode::Entry& entry, const ReadContext& context,
                  Diagnostics& diagnostics, absl::string_view schema, absl::string_view type) {
  Output output{.type = std::string(type)};
  if (entry.value->kind == YamlNode::Kind::kNull) return output;  // `model:` takes the defaults
  if (entry.value->kind == YamlNode::Kind::kScalar) {
    diagnostics.Error(entry.line,
                      absl::StrCat("output \"", entry.key, "\" is text: write its type and mode, ",
                                   "or, in a step of a pipeline, ${{parent.outputs.NAME}}"));
    return output;
  }
  MappingReader reader(*entry.value, absl::StrCat("output \"", entry.key, "\""), diagnostics,
                       {schema, "outputs.*."});
  reader.Choice("type", kPathTypes, output.type);
  if (output.type == "path") output.type = "uri_folder";
  reader.Choice("mode", kOutputModes, output.mode);
  reader.Take("description");
  if (schema == "command") reader.Take("path");
  reader.Finish();
  const YamlNode::Entry* const path = FindEntry(*entry.value, "path");
  if (output.type == "uri_file") {
    const std::string name = path == nullptr ? "" : FileName(path->value->scalar);
    output.file = name.empty() ? entry.key : name;
  }
  if (path != nullptr && schema == "command")
    TakeOutputPlace(entry.key, *path, context, output, diagnostics);
  return output;
}

std::map<std::string, Input> ReadInputs(MappingReader& job, const ReadContext& context,
                                        Diagnostics& diagnostics) {
  const YamlNode::Entry* section = job.Take("inputs");
  if (section == nullptr) return {};
  return ReadInputSection(*section, context, diagnostics);
}

std::optional<Input> ReadInputDefinition(const YamlNode::Entry& entry, const ReadContext& context,
                                         Diagnostics& diagnostics) {
  if (!CheckName(entry, "input", diagnostics)) return std::nullopt;
  if (entry.value->kind == YamlNode::Kind::kNull) return std::nullopt;
  std::optional<Input> input;
  const ErrorWatch refused(diagnostics);
  if (entry.value->kind == YamlNode::Kind::kMapping) {
    input = InputReader(entry, context, diagnostics).ReadDefinition();
  } else {
    input = ReadInput(entry, context, diagnostics);
  }
  if (!input) return std::nullopt;
  if (refused.any()) Forget(*input);
  input->location.file = diagnostics.file_name();
  if (input->location.line == 0) input->location.line = entry.line;
  return input;
}

std::map<std::string, Input> ReadInputSection(const YamlNode::Entry& section,
                                              const ReadContext& context,
                                              Diagnostics& diagnostics) {
  std::map<std::string, Input> inputs;
  for (const YamlNode::Entry* entry : NamedEntries(section, "input", diagnostics)) {
    const ErrorWatch refused(diagnostics);
    Input input = ReadInput(*entry, context, diagnostics);
    if (refused.any()) Forget(input);
    input.location.file = diagnostics.file_name();
    if (input.location.line == 0) input.location.line = entry->line;
    inputs[entry->key] = std::move(input);
  }
  return inputs;
}

std::map<std::string, Output> ReadOutputs(MappingReader& job, const ReadContext& context,
                                          Diagnostics& diagnostics, absl::string_view schema) {
  std::map<std::string, Output> outputs;
  const YamlNode::Entry* section = job.Take("outputs");
  if (section == nullptr) return outputs;
  for (const YamlNode::Entry* entry : NamedEntries(*section, "output", diagnostics)) {
    outputs[entry->key] = ReadOutput(*entry, context, diagnostics, schema);
  }
  return outputs;
}

}  // namespace tutti::spec
