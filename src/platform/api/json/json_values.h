// Writes values as the JSON of docs/formats/rest.md has them. Text that is not UTF-8 has U+FFFD for
// the bytes that are not.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"

namespace tutti::api {

// Keeps the fields in the order in which they are written, for people who read it.
using OrderedJson = nlohmann::ordered_json;

inline std::string Text(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

inline OrderedJson TextOrNull(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

// Returns the name of a value that JSON has no number for: "nan", "inf" or "-inf"; "" for all
// others.
inline const char* NotFinite(double value) {
  if (std::isfinite(value)) return "";
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace tutti::api
