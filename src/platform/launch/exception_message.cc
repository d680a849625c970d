#include "platform/launch/exception_message.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::launch {
namespace {

using Lines = std::vector<std::string>;

constexpr int kLongestMessage = 200;  // lines

// "train.py:3: assert x == 4", of the last frame between a traceback's begin and its end.
std::string LastFrame(Lines::const_iterator begin, Lines::const_iterator end) {
  for (auto line = end; line-- != begin;) {
    absl::string_view frame = absl::StripLeadingAsciiWhitespace(*line);
    if (!absl::ConsumePrefix(&frame, "File \"")) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(frame, absl::MaxSplits("\", line ", 1));
    if (parts.second.empty()) continue;
    const absl::string_view file = parts.first.substr(parts.first.rfind('/') + 1);
    const absl::string_view number = parts.second.substr(0, parts.second.find(','));
    const std::string code = line + 1 == end ? "" : *(line + 1);
    return absl::StrCat(file, ":", number, code.empty() ? "" : ": ",
                        absl::StripAsciiWhitespace(code));
  }
  return "";
}

// Where the message that begins at `line` ends at the latest.
Lines::const_iterator EndOfMessage(const Lines& lines, Lines::const_iterator line) {
  const auto latest = lines.end() - line > kLongestMessage ? line + kLongestMessage : lines.end();
  return std::find_if(line + 1, latest, [](const std::string& next) {
    return absl::StrContains(next, "Traceback (most recent call last):") ||
           absl::StartsWith(next, "During handling of the above exception") ||
           absl::StartsWith(next, "The above exception was the direct cause") ||
           absl::StartsWith(next, "Exception ignored in");
  });
}

// TensorFlow tells where a node of its graph was made before it tells what is wrong with it.
bool IsOfAGraphNode(absl::string_view line) {
  return absl::StartsWith(line, " ") || absl::StartsWith(line, "Detected at node") ||
         absl::StartsWith(line, "Node: ") || absl::StartsWith(line, "<stack traces unavailable>");
}

// How the message goes on after its first line; empty where that says enough.
std::string Continuation(const std::string& first, Lines::const_iterator next,
                         Lines::const_iterator end) {
  if (next != end && absl::EndsWith(first, ":")) {
    if (absl::StartsWith(*next, "Detected at node")) {
      next = std::find_if_not(next, end, IsOfAGraphNode);
    }
    return next == end ? "" : *next;
  }
  if (absl::StrContains(first, " validation error") && end - next >= 2) {  // pydantic
    return absl::StrCat(next[0], ": ", absl::StripAsciiWhitespace(next[1]));
  }
  const auto nccl = std::find(next, end, "Last error:");
  return end - nccl < 2 ? "" : nccl[1];
}

}  // namespace

bool IsSyntaxError(absl::string_view line) {
  return absl::StartsWith(line, "SyntaxError: ") || absl::StartsWith(line, "IndentationError: ") ||
         absl::StartsWith(line, "TabError: ");
}

std::string ExceptionMessage(const Lines& lines, Lines::const_iterator traceback,
                             Lines::const_iterator line) {
  if (!absl::StrContains(*line, ':') || IsSyntaxError(*line)) {
    const std::string place = LastFrame(traceback, line);
    return place.empty() ? *line : absl::StrCat(*line, " at ", place);
  }
  const std::string more = Continuation(*line, line + 1, EndOfMessage(lines, line));
  if (!more.empty()) return absl::StrCat(*line, " ", absl::StripAsciiWhitespace(more));
  if (!absl::StrContains(*line, "trying to connect to (")) return *line;
  const auto unknown = std::find_if(lines.begin(), lines.end(), [](const std::string& other) {
    return absl::StrContains(other, "(gai error: ");
  });
  if (unknown == lines.end()) return *line;
  const std::string error = unknown->substr(unknown->find("(gai error: "));
  return absl::StrCat(*line, " ", error.substr(0, error.find(')') + 1));
}

}  // namespace tutti::launch
