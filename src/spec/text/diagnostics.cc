#include "spec/text/diagnostics.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostErrors = 20;

constexpr size_t kMostLines = 8;  // that a warning names

// One line: what it quotes from the file may hold several.
std::string Shown(const SourceLocation& location, absl::string_view message) {
  return absl::StrReplaceAll(absl::StrCat(location.file, ":", location.line, ": ", message),
                             {{"\n", " "}});
}

// " (also at lines 7, 9)".
std::string AlsoAt(const std::vector<int>& lines) {
  if (lines.empty()) return "";
  const size_t shown = std::min(lines.size(), kMostLines);
  return absl::StrCat(" (also at line", lines.size() == 1 ? " " : "s ",
                      absl::StrJoin(lines.begin(), lines.begin() + shown, ", "),
                      shown < lines.size() ? ", …)" : ")");
}

}  // namespace

void Diagnostics::Error(int line, absl::string_view message) { Error({file_name_, line}, message); }

void Diagnostics::Error(const SourceLocation& location, absl::string_view message) {
  errors_.push_back({location.line, location, std::string(message)});
}

void Diagnostics::Warning(int line, absl::string_view message) {
  Warning({file_name_, line}, message);
}

void Diagnostics::Warning(const SourceLocation& location, absl::string_view message) {
  warnings_.push_back({location.line, location, std::string(message)});
}

void Diagnostics::Add(int line, const Diagnostics& other) {
  Append(line, other.errors_, errors_);
  Append(line, other.warnings_, warnings_);
}

void Diagnostics::Append(int line, const Messages& from, Messages& to) {
  for (Message& message : Sorted(from)) {
    to.push_back({line, std::move(message.location), std::move(message.text)});
  }
}

Diagnostics::Messages Diagnostics::Sorted(Messages messages) {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.line < b.line; });
  std::set<std::string> told;
  std::erase_if(messages, [&](const Message& message) {
    return !told.insert(Shown(message.location, message.text)).second;
  });
  return messages;
}

absl::Status Diagnostics::status(absl::StatusCode code) const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const Message& message : Sorted(errors_)) {
    lines.push_back(Shown(message.location, message.text));
  }
  if (lines.size() > kMostErrors) {
    const size_t more = lines.size() - kMostErrors;
    lines.resize(kMostErrors);
    lines.push_back(absl::StrCat("and ", more, more == 1 ? " more error" : " more errors"));
  }
  return absl::Status(code, absl::StrJoin(lines, "\n"));
}

std::vector<std::string> Diagnostics::warnings() const {
  std::vector<const Message*> first;
  std::map<std::pair<std::string, std::string>, std::vector<int>> others;
  const Messages sorted = Sorted(warnings_);
  for (const Message& message : sorted) {
    const auto [known, is_new] = others.try_emplace({message.location.file, message.text});
    if (is_new) {
      first.push_back(&message);
    } else {
      known->second.push_back(message.location.line);
    }
  }
  std::vector<std::string> lines;
  for (const Message* message : first) {
    lines.push_back(Shown(message->location, message->text) +
                    AlsoAt(others[{message->location.file, message->text}]));
  }
  return lines;
}

}  // namespace tutti::spec
