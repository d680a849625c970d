#include "spec/json/json_fields.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/json/place_json.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {
using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string path, Missing missing)
    : object_(object), path_(std::move(path)), missing_(missing) {
  if (!object_.is_object()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(path_.empty() ? "the document" : path_, " must be an object"));
  }
}

std::string JsonFields::PathOf(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

void JsonFields::Fail(const std::string& message) {
  status_.Update(absl::InvalidArgumentError(message));
}

void JsonFields::Update(const absl::Status& status) { status_.Update(status); }

const json* JsonFields::Find(const char* name) {
  if (!status_.ok()) return nullptr;
  read_.insert(name);
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  if (missing_ == Missing::kIsAnError) Fail(absl::StrCat(PathOf(name), " is missing"));
  return nullptr;
}

const json* JsonFields::Array(const char* name) {
  const json* value = Find(name);
  if (value == nullptr || value->is_array()) return value;
  Fail(absl::StrCat(PathOf(name), " must be an array"));
  return nullptr;
}

void JsonFields::Read(const char* name, std::string& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_string()) return Fail(absl::StrCat(PathOf(name), " must be a string"));
  value = found->get_ref<const std::string&>();
}

void JsonFields::Read(const char* name, int64_t& value, int64_t least) {
  const json* found = Find(name);
  if (found == nullptr) return;
  const bool fits = found->is_number_integer() &&
                    !(found->is_number_unsigned() &&
                      found->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
  if (!fits || found->get<int64_t>() < least) {
    return Fail(absl::StrCat(PathOf(name), " must be a whole number of at least ", least));
  }
  value = found->get<int64_t>();
}

void JsonFields::Read(const char* name, int& value, int least, int most) {
  int64_t wide = value;
  Read(name, wide, std::numeric_limits<int64_t>::min());
  if (!status_.ok()) return;
  if (wide < least || wide > most) {
    return Fail(
        absl::StrCat(PathOf(name), " must be from ", least, " to ", most, ", but is ", wide));
  }
  value = static_cast<int>(wide);
}

void JsonFields::Read(const char* name, double& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  const double number = found->is_number() ? found->get<double>() : -1;
  if (!(number >= 0 && number <= 1e12)) {
    return Fail(absl::StrCat(PathOf(name), " must be a number from 0 to 1e12"));
  }
  value = number;
}

void JsonFields::Read(const char* name, bool& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) return Fail(absl::StrCat(PathOf(name), " must be true or false"));
  value = found->get<bool>();
}

void JsonFields::Read(const char* name, std::vector<std::string>& value) {
  const json* found = Array(name);
  if (found == nullptr) return;
  value.clear();
  for (const json& text : *found) {
    if (!text.is_string()) return Fail(absl::StrCat(PathOf(name), " must hold strings"));
    value.push_back(text.get<std::string>());
  }
}

void JsonFields::Read(const char* name, std::vector<int>& value) {
  const json* found = Array(name);
  if (found == nullptr) return;
  value.clear();
  for (const json& number : *found) {
    const bool is_one =
        number.is_number_integer() && number >= 0 && number <= std::numeric_limits<int>::max();
    if (!is_one) return Fail(absl::StrCat(PathOf(name), " must hold whole numbers from 0 on"));
    value.push_back(number.get<int>());
  }
}

void JsonFields::Read(const char* name, std::map<std::string, std::string>& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return Fail(absl::StrCat(PathOf(name), " must be an object"));
  value.clear();
  for (const auto& [key, text] : found->items()) {
    if (!text.is_string()) {
      return Fail(absl::StrCat(PathOf(name), ".", key, " must be a string"));
    }
    value[key] = text.get<std::string>();
  }
}

void JsonFields::Read(const char* name, std::map<std::string, Input>& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return Fail(absl::StrCat(PathOf(name), " must be an object"));
  value.clear();
  for (const auto& [key, part] : found->items()) {
    JsonFields fields(part, absl::StrCat(PathOf(name), ".", key), missing_);
    Input& input = value[key];
    fields.Read("type", input.type);
    fields.Read("path", input.path);
    fields.Read("mode", input.mode);
    fields.Read("literal", input.literal);
    fields.Read("absent", input.absent);
    fields.Read("line", input.location.line, 0, std::numeric_limits<int>::max());
    if (part.is_object() && part.contains("asset")) fields.Read("asset", input.asset);
    if (part.is_object() && part.contains("place")) {
      fields.Ignore("place");
      fields.Update(ReadPlace(part["place"], fields.PathOf("place"), input.place.emplace()));
    }
    if (part.is_object() && part.contains("table")) {
      fields.Read("table", input.table);
      fields.Read("pattern", input.pattern);
      fields.Read("placed", input.placed);
    }
    Update(fields.Finish());
  }
}

void JsonFields::Read(const char* name, std::map<std::string, Output>& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return Fail(absl::StrCat(PathOf(name), " must be an object"));
  value.clear();
  for (const auto& [key, part] : found->items()) {
    JsonFields fields(part, absl::StrCat(PathOf(name), ".", key), missing_);
    Output& output = value[key];
    fields.Read("type", output.type);
    fields.Read("mode", output.mode);
    fields.Read("file", output.file);
    if (part.is_object() && part.contains("place")) {
      fields.Ignore("place");
      fields.Update(ReadPlace(part["place"], fields.PathOf("place"), output.place.emplace()));
    }
    Update(fields.Finish());
  }
}

void JsonFields::Read(const char* name, Environment& value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (found->is_string()) return;  // "host", as the first version wrote it
  JsonFields fields(*found, PathOf(name), missing_);
  fields.Read("name", value.name);
  fields.Read("is_host", value.is_host);
  if (found->is_object() && found->contains("image")) {  // none in most
    JsonFields image((*found)["image"], fields.PathOf("image"), missing_);
    image.Read("reference", value.image.reference);
    image.Read("context", value.image.context);
    image.Read("dockerfile", value.image.dockerfile);
    image.Read("place", value.image.location);
    if ((*found)["image"].contains("needed_by")) image.Read("needed_by", value.image.needed_by);
    fields.Update(image.Finish());
    fields.Ignore("image");
  }
  if (found->is_object() && found->contains("variables")) {
    fields.Read("variables", value.variables);
  }
  if (found->is_object() && found->contains("as_of_pins")) {
    fields.Read("as_of_pins", value.as_of_pins);
  }
  if (found->is_object() && found->contains("torch")) fields.Read("torch", value.torch);
  if (found->is_object() && found->contains("programs")) {
    value.programs.clear();
    if (const json* programs = fields.Array("programs")) {
      for (size_t i = 0; i < programs->size(); ++i) {
        JsonFields part((*programs)[i], absl::StrCat(fields.PathOf("programs"), "[", i, "]"),
                        missing_);
        Program& program = value.programs.emplace_back();
        part.Read("name", program.name);
        part.Read("package", program.package);
        part.Read("place", program.location);
        fields.Update(part.Finish());
      }
    }
  }
  fields.Read("python", value.python);
  fields.Read("options", value.options);
  if (const json* packages = fields.Array("packages")) {
    value.packages.clear();
    for (size_t i = 0; i < packages->size(); ++i) {
      JsonFields part((*packages)[i], absl::StrCat(fields.PathOf("packages"), "[", i, "]"),
                      missing_);
      Requirement& package = value.packages.emplace_back();
      part.Read("text", package.text);
      part.Read("place", package.location);
      fields.Update(part.Finish());
    }
  }
  Update(fields.Finish());
}

void JsonFields::ReadObject(const char* name, absl::FunctionRef<void(JsonFields&)> read) {
  const json* found = Find(name);
  if (found == nullptr) return;
  JsonFields fields(*found, PathOf(name), missing_);
  read(fields);
  Update(fields.Finish());
}

void JsonFields::Read(const char* name, Distribution& value) {
  ReadObject(name, [&](JsonFields& fields) {
    fields.Read("type", value.type);
    const DistributionDriver* const driver = FindDistribution(value.type);
    if (driver == nullptr || driver->type != value.type) {
      fields.Fail(absl::StrCat(fields.PathOf("type"), " is unknown: \"", value.type, "\""));
    }
    fields.Read("process_count_per_instance", value.process_count_per_instance, 1, 100'000);
    fields.Read("worker_count", value.worker_count, 0, 1'000'000);
    fields.Read("parameter_server_count", value.parameter_server_count, 0, 1'000'000);
    if (driver != nullptr && driver->read_json != nullptr) driver->read_json(fields, value);
  });
}

void JsonFields::Read(const char* name, Priority& value) {
  std::string text(Name(value));
  Read(name, text);
  if (const auto known = PriorityFromName(text)) {
    value = *known;
  } else {
    Fail(absl::StrCat(PathOf(name), " is unknown: \"", text, "\""));
  }
}

absl::Status JsonFields::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key)) Fail(absl::StrCat("unknown field ", PathOf(key)));
  }
  return status_;
}

absl::StatusOr<json> ParseJsonObject(absl::string_view text, absl::string_view what) {
  json document = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_object()) return document;
  return absl::InvalidArgumentError(
      absl::StrCat(what, document.is_discarded() ? ": is not JSON" : ": is not a JSON object"));
}

json JsonOf(const std::map<std::string, Input>& inputs) {
  json document = json::object();
  for (const auto& [name, input] : inputs) {
    document[name] = {{"type", input.type},     {"path", input.path},
                      {"mode", input.mode},     {"literal", input.literal},
                      {"absent", input.absent}, {"line", input.location.line}};
    if (!input.asset.empty()) document[name]["asset"] = input.asset;
    if (input.place) document[name]["place"] = JsonOf(*input.place);
    if (input.table.empty() && input.pattern.empty()) continue;
    document[name].update(
        {{"table", input.table}, {"pattern", input.pattern}, {"placed", input.placed}});
  }
  return document;
}

json JsonOf(const std::map<std::string, Output>& outputs) {
  json document = json::object();
  for (const auto& [name, output] : outputs) {
    document[name] = {{"type", output.type}, {"mode", output.mode}, {"file", output.file}};
    if (output.place) document[name]["place"] = JsonOf(*output.place);
  }
  return document;
}

json JsonOf(const Environment& environment) {
  json packages = json::array();
  for (const Requirement& package : environment.packages) {
    packages.push_back({{"text", package.text}, {"place", package.location}});
  }
  json document = {{"name", environment.name},
                   {"is_host", environment.is_host},
                   {"python", environment.python},
                   {"packages", std::move(packages)},
                   {"options", environment.options}};
  for (const Program& program : environment.programs) {
    document["programs"].push_back(
        {{"name", program.name}, {"package", program.package}, {"place", program.location}});
  }
  if (!environment.variables.empty()) document["variables"] = environment.variables;
  if (!environment.as_of_pins) document["as_of_pins"] = false;
  if (!environment.torch.empty()) document["torch"] = environment.torch;
  const Image& image = environment.image;
  if (image.empty()) return document;
  document["image"] = {{"reference", image.reference},
                       {"context", image.context},
                       {"dockerfile", image.dockerfile},
                       {"place", image.location}};
  if (!image.needed_by.empty()) document["image"]["needed_by"] = image.needed_by;
  return document;
}

json JsonOf(const Distribution& distribution) {
  json document = {{"type", distribution.type},
                   {"process_count_per_instance", distribution.process_count_per_instance},
                   {"worker_count", distribution.worker_count},
                   {"parameter_server_count", distribution.parameter_server_count}};
  const auto write = DriverOf(distribution).write_json;
  if (write != nullptr) write(distribution, document);
  return document;
}

json JsonOf(Priority priority) { return std::string(Name(priority)); }

void AddPart(const std::vector<int>& cores, const std::vector<std::string>& gpus, json& document) {
  if (cores.empty()) return;
  document["cores"] = cores;
  document["gpus"] = gpus;
}

std::string Dump(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tutti::spec
