#include "spec/diagnostics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostErrors = 20;

// One line: what it quotes from the file may hold several.
std::string Line(absl::string_view file_name, int line, absl::string_view message) {
  return absl::StrReplaceAll(absl::StrCat(file_name, ":", line, ": ", message), {{"\n", " "}});
}

}  // namespace

void Diagnostics::Error(int line, absl::string_view message) {
  errors_.push_back({line, Line(file_name_, line, message)});
}

void Diagnostics::Error(const Place& place, absl::string_view message) {
  errors_.push_back({place.line, Line(place.file, place.line, message)});
}

void Diagnostics::Warning(int line, absl::string_view message) {
  warnings_.push_back({line, Line(file_name_, line, message)});
}

void Diagnostics::Add(int line, const Diagnostics& other) {
  for (std::string& text : Sorted(other.errors_)) errors_.push_back({line, std::move(text)});
  for (std::string& text : Sorted(other.warnings_)) warnings_.push_back({line, std::move(text)});
}

std::vector<std::string> Diagnostics::Sorted(Messages messages) {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.line < b.line; });
  std::vector<std::string> lines;
  for (Message& message : messages) lines.push_back(std::move(message.text));
  return lines;
}

absl::Status Diagnostics::status(absl::StatusCode code) const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<std::string> lines = Sorted(errors_);
  if (lines.size() > kMostErrors) {
    const size_t more = lines.size() - kMostErrors;
    lines.resize(kMostErrors);
    lines.push_back(absl::StrCat("and ", more, more == 1 ? " more error" : " more errors"));
  }
  return absl::Status(code, absl::StrJoin(lines, "\n"));
}

std::vector<std::string> Diagnostics::warnings() const { return Sorted(warnings_); }

}  // namespace tutti::spec
