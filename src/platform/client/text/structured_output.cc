#include "platform/client/text/structured_output.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/null.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tutti::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 100;

// Returns whether a YAML reader takes the unquoted text for a string and not for a number, date or
// null.
bool IsPlainWord(const std::string& text) {
  static constexpr std::array<absl::string_view, 9> kReserved = {"true", "false", "yes", "no", "on",
                                                                 "off",  "null",  "y",   "n"};
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
  });
  return simple && std::none_of(kReserved.begin(), kReserved.end(), [&](absl::string_view word) {
           return absl::EqualsIgnoreCase(word, text);
         });
}

void EmitText(YAML::Emitter& yaml, const std::string& text) {
  if (IsPlainWord(text)) {
    yaml << text;
  } else {
    yaml << YAML::DoubleQuoted << text;
  }
}

// Recursive, as dump() is: kDeepest bounds both.
void Emit(YAML::Emitter& yaml, const Json& value) {
  if (value.is_object()) {
    yaml << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      yaml << YAML::Key;
      EmitText(yaml, key);
      yaml << YAML::Value;
      Emit(yaml, item);
    }
    yaml << YAML::EndMap;
  } else if (value.is_array()) {
    yaml << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    for (const Json& item : value) Emit(yaml, item);
    yaml << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitText(yaml, value.get<std::string>());
  } else if (value.is_null()) {
    yaml << YAML::Null;
  } else {
    yaml << value.dump();  // numbers, true and false are the same in both
  }
}

}  // namespace

absl::Status WriteStructured(std::ostream& out, absl::string_view text, Format format) {
  bool too_deep = false;
  const auto watch = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kDeepest;
    return !too_deep;
  };
  const Json value = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (too_deep || value.is_discarded())
    return absl::InternalError("the service's answer is no JSON");
  if (format == Format::kJson) {
    out << value.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  YAML::Emitter yaml;
  Emit(yaml, value);
  out << yaml.c_str() << "\n";
  return absl::OkStatus();
}

}  // namespace tutti::client
