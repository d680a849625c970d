// Describes views (view_fields.h) as schemas of OpenAPI 3.1: each an object whose fields are all
// there, but for those that are absent where there is none, and that has no others.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "spec/views/view_fields.h"

namespace tutti::spec {

class ViewSchemas {
 public:
  using Json = nlohmann::ordered_json;

  // Adds the view's schema, and those of the views in it.
  template <class View>
  void Add() {
    if (schemas_.contains(View::kSchema)) return;
    schemas_[View::kSchema] = nullptr;  // a view may hold itself
    Fields<View> fields{*this};
    View::Fields(fields);
    schemas_[View::kSchema] = {{"type", "object"},
                               {"properties", std::move(fields.properties)},
                               {"required", std::move(fields.required)},
                               {"additionalProperties", false}};
  }

  // The schemas by name, in the order in which they were added.
  const Json& schemas() const { return schemas_; }

 private:
  static Json Reference(const std::string& name) {
    return {{"$ref", absl::StrCat("#/components/schemas/", name)}};
  }

  template <class View>
  struct Fields {
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*, Form form, const char* description = "") {
      Json schema = schemas.Of(static_cast<const Value*>(nullptr), form);
      if (form.is_time && *description == '\0') description = "RFC 3339, UTC, microseconds";
      if (*description != '\0') schema["description"] = description;
      properties[name] = std::move(schema);
      if (!form.absent_if_none) required.push_back(name);
    }
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*member, const char* description = "") {
      Field(name, member, kPlain, description);
    }

    ViewSchemas& schemas;
    Json properties = Json::object(), required = Json::array();
  };

  template <class Value>
  Json Of(const Value*, const Form& form) {
    if constexpr (std::is_same_v<Value, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_same_v<Value, uint64_t>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_integral_v<Value>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_floating_point_v<Value>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_same_v<Value, std::string>) {
      return OfText(form);
    } else if constexpr (std::is_same_v<Value, JsonText>) {
      return {{"type", {"object", "null"}}};
    } else {
      Add<Value>();
      return Reference(Value::kSchema);
    }
  }
  static Json OfText(const Form& form) {
    if (form.schema != nullptr) return Reference(form.schema);
    Json schema = {{"type", "string"}};
    if (form.null_if_empty) schema["type"] = {"string", "null"};
    if (form.is_time) schema["format"] = "date-time";
    for (const char* const value : form.values) schema["enum"].push_back(value);
    if (form.null_if_empty && !form.values.empty()) schema["enum"].push_back(nullptr);
    return schema;
  }
  template <class Value>
  Json Of(const std::optional<Value>*, const Form& form) {
    Json schema = Of(static_cast<const Value*>(nullptr), kPlain);
    if (form.absent_if_none) return schema;
    if (!schema.contains("type")) return {{"oneOf", {std::move(schema), {{"type", "null"}}}}};
    schema["type"] = {schema["type"], "null"};
    return schema;
  }
  template <class Value>
  Json Of(const std::vector<Value>*, const Form&) {
    return {{"type", "array"}, {"items", Of(static_cast<const Value*>(nullptr), kPlain)}};
  }
  template <class Value>
  Json Of(const std::map<std::string, Value>*, const Form&) {
    return {{"type", "object"},
            {"additionalProperties", Of(static_cast<const Value*>(nullptr), kPlain)}};
  }

  Json schemas_ = Json::object();
};

}  // namespace tutti::spec
