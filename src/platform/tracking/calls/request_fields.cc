#include "platform/tracking/calls/request_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/utf8.h"

namespace tutti::tracking {
namespace {

using nlohmann::json;

constexpr size_t kMostBytesOfValue = 200;  // that an error says
constexpr int kDeepestValue = 16;          // MLflow's requests have four levels

// Returns how deeply the values of a JSON text are nested, without parsing them: a parser may
// recurse for each level.
int DepthOf(absl::string_view text) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
      continue;
    }
    in_text = c == '"';
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

std::optional<int64_t> IntegerIn(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    const bool is_whole = std::trunc(number) == number && std::abs(number) < 9e18;
    return is_whole ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  int64_t number = 0;
  const bool is_text = value.is_string();
  if (is_text && absl::SimpleAtoi(value.get_ref<const std::string&>(), &number)) return number;
  return std::nullopt;
}

std::optional<double> NumberIn(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  // Only numbers as in JSON are valid, while SimpleAtod takes hexadecimal ones, too.
  if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return std::nullopt;
}

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("Malformed request: ", why));
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = base::Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

absl::StatusOr<json> ParseRequest(absl::string_view body) {
  if (body.empty()) return json::object();
  if (DepthOf(body) > kDeepestValue) {
    return Malformed("the body's JSON is too deep");
  }
  json parsed = json::parse(body.data(), body.data() + body.size(), nullptr, false);
  if (parsed.is_discarded() && !IsUtf8(body)) return Malformed("the body is not UTF-8");
  if (parsed.is_discarded()) {
    return Malformed(
        "the body is not JSON. What is no number is a text there (\"NaN\", \"Infinity\", "
        "\"-Infinity\"); numbers that a double cannot hold and halves of characters are refused");
  }
  if (!parsed.is_object()) return Malformed("the body must be one JSON object");
  return parsed;
}

json QueryObject(const http::Request& request) {
  json object = json::object();
  for (const auto& [key, value] : request.query) {
    json& field = object[key];
    if (field.is_null()) {
      field = value;
      continue;
    }
    if (field.is_string()) field = json::array({field});
    field.push_back(value);
  }
  return object;
}

const json* RequestFields::Find(const char* name, Need need) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  const bool is_there = found != object_.end() && !found->is_null() &&
                        (need == Need::kOptional || !found->is_string() ||
                         !found->get_ref<const std::string&>().empty());
  if (is_there) return &*found;
  if (need == Need::kRequired) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("Missing value for required parameter '", PathOf(name), "'.")));
  }
  return nullptr;
}

void RequestFields::FailType(const char* name, const json& value, absl::string_view wanted) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  Fail(absl::InvalidArgumentError(absl::StrCat("Invalid value ", text.substr(0, kMostBytesOfValue),
                                               " for parameter '", PathOf(name),
                                               "' supplied: it must be ", wanted, ".")));
}

std::string RequestFields::Text(const char* name, Need need) {
  const json* const value = Find(name, need);
  if (value == nullptr) return "";
  if (!value->is_string()) {
    FailType(name, *value, "a text");
    return "";
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) {
    FailType(name, *value, "a text without NUL characters");
    return "";
  }
  return text;
}

std::string RequestFields::TextOrNumber(const char* name, Need need) {
  const json* const value = Find(name, need);
  if (value != nullptr && value->is_number_integer()) return value->dump();
  return Text(name, need);
}

std::string RequestFields::TextOf(const char* name, const char* older, Need need) {
  if (!status_.ok()) return "";
  const bool has_older = !object_.contains(name) && object_.contains(older);
  return Text(has_older ? older : name, need);
}

std::optional<int64_t> RequestFields::Integer(const char* name, Need need) {
  const json* const value = Find(name, need);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = IntegerIn(*value);
  if (!number) FailType(name, *value, "a whole number");
  return number;
}

int64_t RequestFields::Integer(const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const int64_t number = Integer(name, Need::kOptional).value_or(otherwise);
  if (number < least || number > most) {
    Fail(absl::InvalidArgumentError(absl::StrCat("Invalid value ", number, " for parameter '",
                                                 PathOf(name), "' supplied: ", name,
                                                 " must be between ", least, " and ", most, ".")));
    return otherwise;
  }
  return number;
}

double RequestFields::Number(const char* name) {
  const json* const value = Find(name, Need::kRequired);
  if (value == nullptr) return 0;
  const std::optional<double> number = NumberIn(*value);
  if (!number) FailType(name, *value, "a number (64-bit floating point)");
  return number.value_or(0);
}

std::vector<std::string> RequestFields::Texts(const char* name) {
  std::vector<std::string> texts;
  const json* const value = Find(name, Need::kOptional);
  if (value == nullptr) return texts;
  const json one = value->is_array() ? *value : json::array({*value});
  for (const json& item : one) {
    if (!item.is_string() && !item.is_number_integer()) {
      FailType(name, *value, "an array of texts");
      return {};
    }
    texts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    if (texts.back().find('\0') == std::string::npos) continue;
    FailType(name, *value, "an array of texts without NUL characters");
    return {};
  }
  return texts;
}

std::vector<const json*> RequestFields::Objects(const char* name) {
  std::vector<const json*> objects;
  const json* const value = Find(name, Need::kOptional);
  if (value == nullptr) return objects;
  bool fits = value->is_array();
  for (const json& item : *value) {
    fits = fits && item.is_object();
    objects.push_back(&item);
  }
  if (fits) return objects;
  FailType(name, *value, "an array of objects");
  return {};
}

const json* RequestFields::Object(const char* name, Need need) {
  const json* const value = Find(name, need);
  if (value == nullptr || value->is_object()) return value;
  FailType(name, *value, "an object");
  return nullptr;
}

}  // namespace tutti::tracking
