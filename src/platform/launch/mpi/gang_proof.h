// Defines the proof that launchers of a gang give each other as they meet, and reads the fields of
// their messages (gang_link.h). Internal to this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "base/hash.h"

namespace tutti::launch {

inline constexpr absl::Duration kIntroduction = absl::Seconds(5);  // of one that has connected
inline constexpr size_t kNonceBytes = 16;

inline std::string Proof(const std::string& token, const std::string& words) {
  return base::Hex(base::HmacSha256(token, words));
}

// Returns "" and false where there is no such field.
inline std::string TextOf(const nlohmann::json& message, const char* name) {
  const auto field = message.find(name);
  return field != message.end() && field->is_string() ? field->get<std::string>() : "";
}
inline bool FlagOf(const nlohmann::json& message, const char* name) {
  const auto field = message.find(name);
  return field != message.end() && field->is_boolean() && field->get<bool>();
}

}  // namespace tutti::launch
