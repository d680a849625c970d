// Writes a view (view_fields.h) as JSON: its fields in the order of its list, as people read them.
// Text that is not UTF-8 has U+FFFD for the bytes that are not; a number that is not finite is
// null. Appends to one text, since a list may have ten thousand jobs; a tree of JSON values takes
// some times as long.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/views/view_fields.h"

namespace tutti::spec {

// Appends `text` in quotes.
void AppendQuoted(absl::string_view text, std::string& to);
void AppendNumber(double value, std::string& to);
// Returns RFC 3339, in UTC, with microseconds; "" for no time.
std::string Rfc3339(absl::Time time);
std::string Rfc3339(const std::optional<absl::Time>& time);

class ViewWriter {
 public:
  template <class View>
  static std::string Text(const View& view) {
    std::string text;
    Append(view, text);
    return text;
  }

 private:
  template <class View>
  struct Fields {
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*member, Form form, const char* = "") {
      const Value& value = view.*member;
      if (form.absent_if_none && IsNone(value)) return;
      absl::StrAppend(&to, to.back() == '{' ? "\"" : ",\"", name, "\":");
      if (form.null_if_empty && IsEmptyText(value)) {
        to += "null";
      } else {
        Append(value, to);
      }
    }
    template <class Owner, class Value>
    void Field(const char* name, Value Owner::*member, const char* = "") {
      Field(name, member, kPlain);
    }

    const View& view;
    std::string& to;
  };

  template <class Value>
  static bool IsNone(const Value&) {
    return false;
  }
  template <class Value>
  static bool IsNone(const std::optional<Value>& value) {
    return !value.has_value();
  }
  template <class Value>
  static bool IsEmptyText(const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>) return value.empty();
    return false;
  }

  template <class Value>
  static void Append(const Value& value, std::string& to) {
    if constexpr (std::is_same_v<Value, bool>) {
      to += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<Value>) {
      absl::StrAppend(&to, value);
    } else if constexpr (std::is_floating_point_v<Value>) {
      AppendNumber(value, to);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      AppendQuoted(value, to);
    } else if constexpr (std::is_same_v<Value, JsonText>) {
      to += value.text.empty() ? "null" : value.text;
    } else {
      to += '{';
      Fields<Value> fields{value, to};
      Value::Fields(fields);
      to += '}';
    }
  }
  template <class Value>
  static void Append(const std::optional<Value>& value, std::string& to) {
    if (value) {
      Append(*value, to);
    } else {
      to += "null";
    }
  }
  template <class Value>
  static void Append(const std::vector<Value>& values, std::string& to) {
    to += '[';
    for (const Value& value : values) {
      if (&value != values.data()) to += ',';
      Append(value, to);
    }
    to += ']';
  }
  template <class Value>
  static void Append(const std::map<std::string, Value>& values, std::string& to) {
    to += '{';
    bool first = true;
    for (const auto& [name, value] : values) {
      if (!first) to += ',';
      first = false;
      AppendQuoted(name, to);
      to += ':';
      Append(value, to);
    }
    to += '}';
  }
};

}  // namespace tutti::spec
