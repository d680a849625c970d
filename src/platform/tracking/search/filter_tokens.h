// Takes a filter apart into words, quoted texts, numbers and signs. Internal to platform/tracking.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::tracking {

struct Token {
  // kWord: also one that begins with digits; kQuoted: '…' or "…"; kName: `…`; kEnd: nothing
  // follows.
  enum class Kind { kWord, kQuoted, kName, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // without its quotes
  size_t place = 0;  // in the filter, in bytes
};

// The last token is kEnd. InvalidArgument for a quote that does not end and for a sign that the
// language does not have.
absl::StatusOr<std::vector<Token>> TokensOf(absl::string_view filter);

}  // namespace tutti::tracking
