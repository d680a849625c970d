#include "platform/launch/diagnosis/error_line.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/launch/diagnosis/exception_message.h"

namespace tutti::launch {
namespace {

constexpr std::ptrdiff_t kLongestEnd = 6;  // lines

// "tar: " of "tar: data.bin: Wrote only 4608 of 10240 bytes"; or "".
absl::string_view ProgramOf(absl::string_view line) {
  const size_t end = line.find(": ");
  return IsOfAnotherProgram(line) ? line.substr(0, end + 2) : "";
}

bool IsFurtherIn(absl::string_view line) {
  return absl::StartsWith(line, "  ") || absl::StartsWith(line, "\t");
}

// Whether `line` announces all that was printed after it, in lines that are not further in.
bool AnnouncesTheEnd(Lines::const_iterator line, Lines::const_iterator end) {
  const bool is_near = end - line > 1 && end - line <= kLongestEnd;
  return is_near && absl::EndsWith(*line, ":") && std::none_of(line + 1, end, IsFurtherIn) &&
         std::none_of(line + 1, end, EndsAMessage);
}

// The line and what it announces: lines below it that are further in, or a paragraph's rest.
std::string WithItsRest(Lines::const_iterator line, Lines::const_iterator end) {
  std::string text = *line;
  const bool announces = absl::EndsWith(text, ":") || absl::StartsWith(text, "  ");
  if (!announces) return text;
  const bool to_the_end = AnnouncesTheEnd(line, end);
  for (++line; line != end && (to_the_end || IsFurtherIn(*line)); ++line) {
    if (EndsAMessage(*line)) break;
    absl::StrAppend(&text, " ", absl::StripAsciiWhitespace(*line));
  }
  return text;
}

}  // namespace

std::string LineThatSaysError(const Lines& lines, Lines::const_iterator end,
                              bool (*says)(absl::string_view)) {
  const auto rend = std::make_reverse_iterator(lines.begin());
  auto found = std::find_if(std::make_reverse_iterator(end), rend, says);
  if (found == rend) return "";
  for (auto line = found; line != rend && line - found <= kOneFailure; ++line) {
    if (says(*line)) found = line;
  }
  const absl::string_view program = ProgramOf(*found);  // which may have said more before
  for (auto line = found + 1; !program.empty() && line != rend && absl::StartsWith(*line, program);
       ++line) {
    if (!IsAWarning(*line)) found = line;
  }
  std::string text = WithItsRest(found.base() - 1, end);
  if (!IsALoggedError(*found)) return text;
  // A program goes on after what it logs: the words of its end say more, if they say error.
  const auto last = std::find_if(found.base(), end, [says](const std::string& candidate) {
    return says(candidate) && !IsALoggedError(candidate) && !BeginsAnew(candidate);
  });
  return last == end ? text : absl::StrCat(WithItsRest(last, end), " (after: ", text, ")");
}

}  // namespace tutti::launch
