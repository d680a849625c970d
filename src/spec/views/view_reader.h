// Reads a view (view_fields.h) from JSON, as a client does whose service may be older or newer: a
// field that is missing or of another type keeps its default, one that is not known is passed over.
// Only a text that is not the document at all is an error: no object, or one without the list that
// the view is for (kNeeded).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "spec/views/view_fields.h"

namespace tutti::spec {

class ViewReader {
 public:
  // Internal, with the text's beginning, for what is not the document.
  template <class View>
  static absl::StatusOr<View> Read(absl::string_view text) {
    const auto document =
        nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (!document.is_object()) {
      return absl::InternalError(
          absl::StrCat("the service's answer is not readable: ", text.substr(0, 80)));
    }
    ViewReader reader;
    View view;
    reader.ReadValue(document, view);
    if (!reader.missing_.empty()) {
      return absl::InternalError(
          absl::StrCat("the service's answer has no \"", reader.missing_, "\""));
    }
    return view;
  }

 private:
  using json = nlohmann::json;

  template <class View>
  struct Fields {
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*member, Form form, const char* = "") {
      const auto found = object.find(name);
      if (form.is_needed && (found == object.end() || !found->is_array())) reader.missing_ = name;
      if (found != object.end()) reader.ReadValue(*found, view.*member);
    }
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*member, const char* = "") {
      Field(name, member, kPlain);
    }

    ViewReader& reader;
    const json& object;
    View& view;
  };

  static constexpr int kDeepest = 64;  // objects within objects

  // The functions return whether the value is of the type.
  template <class Value>
  bool ReadValue(const json& from, Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      if (!from.is_boolean()) return false;
      value = from.get<bool>();
    } else if constexpr (std::is_integral_v<Value>) {
      return ReadInteger(from, value);
    } else if constexpr (std::is_floating_point_v<Value>) {
      if (!from.is_number()) return false;
      value = from.get<Value>();
    } else if constexpr (std::is_same_v<Value, std::string>) {
      if (!from.is_string()) return false;
      value = from.get<std::string>();
    } else if constexpr (std::is_same_v<Value, JsonText>) {
      if (from.is_null()) return false;
      value.text = from.dump(-1, ' ', false, json::error_handler_t::replace);
    } else {
      if (!from.is_object() || depth_ == kDeepest) return false;
      ++depth_;
      Fields<Value> fields{*this, from, value};
      Value::Fields(fields);
      --depth_;
    }
    return true;
  }

  // One that has no room becomes the nearest that has.
  template <class Value>
  static bool ReadInteger(const json& from, Value& value) {
    constexpr auto least = std::numeric_limits<Value>::min();
    constexpr auto most = std::numeric_limits<Value>::max();
    if (from.is_number_unsigned()) {
      const auto number = from.get<uint64_t>();
      value = static_cast<Value>(std::min<uint64_t>(number, static_cast<uint64_t>(most)));
    } else if (from.is_number_integer()) {  // a negative one
      value = static_cast<Value>(std::max<int64_t>(from.get<int64_t>(), least));
    } else if (from.is_number()) {
      const auto number = from.get<double>();
      value = number <= static_cast<double>(least)  ? least
              : number >= static_cast<double>(most) ? most
                                                    : static_cast<Value>(number);
    } else {
      return false;
    }
    return true;
  }

  template <class Value>
  bool ReadValue(const json& from, std::optional<Value>& value) {
    if (!ReadValue(from, value.emplace())) value.reset();
    return true;
  }
  template <class Value>
  bool ReadValue(const json& from, std::vector<Value>& values) {
    if (!from.is_array()) return false;
    for (const json& item : from) {
      if (Value value; ReadValue(item, value)) values.push_back(std::move(value));
    }
    return true;
  }
  template <class Value>
  bool ReadValue(const json& from, std::map<std::string, Value>& values) {
    if (!from.is_object()) return false;
    for (const auto& [name, item] : from.items()) {
      if (Value value; ReadValue(item, value)) values[name] = std::move(value);
    }
    return true;
  }

  std::string missing_;  // a list that the view is for
  int depth_ = 0;
};

}  // namespace tutti::spec
