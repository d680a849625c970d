#include "platform/launch/diagnosis/error_line.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

bool BeginsAMessage(const std::string& line) {
  return EndsAMessage(line) || absl::StartsWithIgnoreCase(line, "error");
}

// Whether the lines from `line` on are few, and none but the first begins a message.
bool AreOneMessage(Lines::const_iterator line, Lines::const_iterator end) {
  return end - line > 1 && end - line <= kLongestEnd && std::none_of(line + 1, end, BeginsAMessage);
}

// Whether `line` announces all that was printed after it, in lines that are not further in.
bool AnnouncesTheEnd(Lines::const_iterator line, Lines::const_iterator end) {
  return absl::EndsWith(*line, ":") && AreOneMessage(line, end) &&
         std::none_of(line + 1, end, IsFurtherIn);
}

// The line and what it announces: lines below it that are further in, or, of a program that says
// nothing else, a paragraph's rest.
std::string WithItsRest(Lines::const_iterator begin, Lines::const_iterator line,
                        Lines::const_iterator end) {
  std::string text = *line;
  const bool announces =
      absl::EndsWith(text, ":") || absl::StartsWith(text, "  ") || IsALoggedError(text);
  if (!announces) return text;
  const bool to_the_end = line == begin && AnnouncesTheEnd(line, end);
  for (++line; line != end && (to_the_end || IsFurtherIn(*line)); ++line) {
    if (EndsAMessage(*line)) break;
    absl::StrAppend(&text, " ", absl::StripAsciiWhitespace(*line));
  }
  return text;
}

}  // namespace

std::string MessageOfAll(const Lines& lines) {
  if (!AreOneMessage(lines.begin(), lines.end()) || !SaysError(lines.front())) return "";
  const std::string& first = lines.front();
  const std::string word = first.substr(0, first.find(' '));
  const bool says_several =
      std::any_of(lines.begin() + 1, lines.end(),
                  [&](const std::string& line) { return absl::StartsWith(line, word); });
  if (says_several) return "";
  // LineThatSaysError finds what such a line announces.
  if (EndsAMessage(first) || IsALoggedError(first) || absl::EndsWith(first, ":")) return "";
  return absl::StrJoin(lines, " ", [](std::string* text, const std::string& line) {
    absl::StrAppend(text, absl::StripAsciiWhitespace(line));
  });
}

std::string HydrasError(const Lines& lines) {
  const auto last = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StartsWith(line, "Set the environment variable HYDRA_FULL_ERROR=1");
  });
  if (last == lines.end() || last == lines.begin()) return "";
  const auto earliest = last - lines.begin() > kOneFailure ? last - kOneFailure : lines.begin();
  auto begin = std::find_if(std::make_reverse_iterator(last), std::make_reverse_iterator(earliest),
                            EndsAMessage)
                   .base();
  // The code that a warning was about.
  begin = std::find_if_not(begin, last, IsFurtherIn);
  const auto end = std::find(begin, last, "Config search path:");
  return absl::StrJoin(begin, end, " ", [](std::string* text, const std::string& line) {
    absl::StrAppend(text, absl::StripAsciiWhitespace(line));
  });
}

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
  std::string text = WithItsRest(lines.begin(), found.base() - 1, end);
  if (!IsALoggedError(*found)) return text;
  // A program goes on after what it logs: the words of its end say more, if they say error.
  const auto rest = std::find_if_not(found.base(), end, IsFurtherIn);
  const auto last = std::find_if(rest, end, [says](const std::string& candidate) {
    return says(candidate) && !IsALoggedError(candidate) && !BeginsAnew(candidate);
  });
  return last == end ? text
                     : absl::StrCat(WithItsRest(lines.begin(), last, end), " (after: ", text, ")");
}

}  // namespace tutti::launch
