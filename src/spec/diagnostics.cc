#include "spec/diagnostics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostErrors = 20;

}  // namespace

void Diagnostics::Error(int line, absl::string_view message) {
  errors_.emplace_back(line, std::string(message));
}

void Diagnostics::Warning(int line, absl::string_view message) {
  warnings_.emplace_back(line, std::string(message));
}

std::vector<std::string> Diagnostics::Sorted(Messages messages) const {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> lines;
  for (const auto& [line, message] : messages) {
    lines.push_back(absl::StrCat(file_name_, ":", line, ": ", message));
  }
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
