// Checks, for tests, that a JSON value has the form that a schema of openapi.json asks for: the
// part of JSON Schema that the document uses (type, enum, properties, required,
// additionalProperties, items, oneOf, $ref).
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tutti::api {

class SchemaCheck {
 public:
  explicit SchemaCheck(const nlohmann::json& document) : document_(document) {}

  // Returns "" or what is wrong and where.
  std::string Check(const nlohmann::json& schema, const nlohmann::json& value,
                    const std::string& at = "$") const {
    if (schema.contains("$ref")) {
      const std::string ref = schema["$ref"];
      return Check(document_.at(nlohmann::json::json_pointer(ref.substr(1))), value, at);
    }
    if (schema.contains("oneOf")) return CheckOneOf(schema["oneOf"], value, at);
    if (schema.contains("type") && !HasType(schema["type"], value)) {
      return absl::StrCat(at, ": is not ", schema["type"].dump(), ": ", value.dump());
    }
    if (schema.contains("enum")) {
      const auto& allowed = schema["enum"];
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        return absl::StrCat(at, ": is not one of ", allowed.dump(), ": ", value.dump());
      }
    }
    if (value.is_object()) return CheckObject(schema, value, at);
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i) {
        std::string wrong = Check(schema["items"], value[i], absl::StrCat(at, "[", i, "]"));
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

 private:
  std::string CheckOneOf(const nlohmann::json& choices, const nlohmann::json& value,
                         const std::string& at) const {
    std::vector<std::string> wrong;
    for (const auto& choice : choices) {
      std::string result = Check(choice, value, at);
      if (!result.empty()) wrong.push_back(std::move(result));
    }
    if (wrong.size() + 1 == choices.size()) return "";
    return absl::StrCat(at, ": fits ", choices.size() - wrong.size(), " of ", choices.size(),
                        " forms: ", value.dump());
  }

  std::string CheckObject(const nlohmann::json& schema, const nlohmann::json& value,
                          const std::string& at) const {
    for (const auto& name : schema.value("required", nlohmann::json::array())) {
      if (!value.contains(name)) return absl::StrCat(at, ": lacks ", name.dump());
    }
    const auto properties = schema.value("properties", nlohmann::json::object());
    const auto others = schema.value("additionalProperties", nlohmann::json(true));
    for (const auto& [name, field] : value.items()) {
      if (!properties.contains(name) && others == false) {
        return absl::StrCat(at, ": has an undocumented \"", name, "\"");
      }
      if (!properties.contains(name) && !others.is_object()) continue;
      const auto& documented = properties.contains(name) ? properties[name] : others;
      std::string wrong = Check(documented, field, absl::StrCat(at, ".", name));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  static bool HasType(const nlohmann::json& type, const nlohmann::json& value) {
    if (type.is_array()) {
      return std::any_of(type.begin(), type.end(),
                         [&](const auto& one) { return HasType(one, value); });
    }
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    return false;
  }

  const nlohmann::json& document_;
};

}  // namespace tutti::api
