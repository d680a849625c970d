// Joins words as sentences do: "a, b or c".
#pragma once

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

template <class Words>
std::string OneOf(const Words& words, absl::string_view last = " or ") {
  std::string text;
  size_t left = std::size(words);
  for (const auto& word : words) {
    absl::StrAppend(&text, text.empty() ? "" : left == 1 ? last : ", ", word);
    --left;
  }
  return text;
}

}  // namespace tutti::base
