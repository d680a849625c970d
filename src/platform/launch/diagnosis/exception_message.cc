#include "platform/launch/diagnosis/exception_message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/launch/diagnosis/python_frame.h"

namespace tutti::launch {
namespace {

constexpr int kMostMessageLines = 40;
constexpr size_t kLeastTelling = 12;  // characters: shorter texts are found anywhere

// "train.py:3: assert x == 4", of the last frame between a traceback's begin and its end.
std::string LastFrame(Lines::const_iterator begin, Lines::const_iterator end) {
  for (auto line = end; line-- != begin;) {
    const std::optional<PythonFrame> frame = FrameIn(*line);
    if (!frame || frame->file() == "os.py" || frame->file() == "<frozen os>") continue;
    const std::string code = line + 1 == end ? "" : *(line + 1);
    return absl::StrCat(frame->file(), ":", frame->line, code.empty() ? "" : ": ",
                        absl::StripAsciiWhitespace(code));
  }
  return "";
}

// TensorFlow tells where a node of its graph was made before it tells what is wrong with it.
bool IsOfAGraphNode(absl::string_view line) {
  return absl::StartsWith(line, " ") || absl::StartsWith(line, "Detected at node") ||
         absl::StartsWith(line, "Node: ") || absl::StartsWith(line, "<stack traces unavailable>");
}

// "----------" or "==========", perhaps with a title.
bool IsRule(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  return absl::StartsWith(line, "----------") || absl::StartsWith(line, "==========");
}

bool IsBareRule(absl::string_view line) {
  return IsRule(line) && line.find_first_not_of("-= \t") == line.npos;
}

std::string Joined(Lines::const_iterator line, Lines::const_iterator end) {
  std::string message(absl::StripAsciiWhitespace(*line));
  for (++line; line != end; ++line) {
    if (absl::StartsWith(*line, "Detected at node")) {
      line = std::find_if_not(line, end, IsOfAGraphNode);
      if (line == end) break;
    }
    const absl::string_view text = absl::StripAsciiWhitespace(*line);
    if (absl::StartsWith(text, "[[{{node ")) continue;
    // It may be of the exception's text, or what a handler of the program's end says of itself.
    const bool is_another = absl::StartsWith(text, "Error: ") && !absl::EndsWith(message, ":");
    absl::StrAppend(&message, is_another ? "; " : " ", text);
  }
  return message;
}

// " (gai error: -2 - Name or service not known)", or empty.
std::string UnknownName(const Lines& lines) {
  const auto unknown = std::find_if(lines.begin(), lines.end(), [](const std::string& other) {
    return absl::StrContains(other, "(gai error: ");
  });
  if (unknown == lines.end()) return "";
  const std::string error = unknown->substr(unknown->find("(gai error: "));
  return absl::StrCat(" ", error.substr(0, error.find(')') + 1));
}

Lines::const_iterator Latest(const Lines& lines, Lines::const_iterator line) {
  return lines.end() - line > kMostMessageLines ? line + kMostMessageLines : lines.end();
}

// Returns where the text of the exception that `line` names has ended.
Lines::const_iterator EndOfMessage(const Lines& lines, Lines::const_iterator line) {
  return std::find_if(line + 1, Latest(lines, line), EndsAMessage);
}

// Returns the text of a message that begins with `rule`, which may frame all of it or its title.
std::string InAFrame(const Lines& lines, Lines::const_iterator rule) {
  const auto end = std::find_if(rule, Latest(lines, rule), [&](const std::string& line) {
    return line != *rule && EndsAMessage(line);
  });
  std::string text;
  for (auto line = rule; line != end; ++line) {
    if (!IsBareRule(*line)) absl::StrAppend(&text, " ", absl::StripAsciiWhitespace(*line));
  }
  return text;
}

// "ValueError" of "ValueError               Traceback (most recent call last)", as IPython's begin;
// else "". Some names are in small letters: "gaierror".
absl::string_view NameInIPythons(absl::string_view line) {
  if (!absl::ConsumeSuffix(&line, " Traceback (most recent call last)")) return "";
  line = absl::StripAsciiWhitespace(line);
  const bool is_name = std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.';
  });
  return is_name ? line : "";
}

// The first exception of the chain whose first traceback of IPython's is at `traceback`, in the
// words of the last one that tells it; or "".
std::string OfIPythonsChain(const Lines& lines, Lines::const_iterator traceback) {
  std::string told;
  while (traceback != lines.end() && !NameInIPythons(*traceback).empty()) {
    const std::string name = absl::StrCat(NameInIPythons(*traceback), ":");
    const auto error = std::find_if(traceback, lines.end(), [&](const std::string& line) {
      return absl::StartsWith(absl::StrCat(line, ":"), name);
    });
    if (error == lines.end()) break;
    const auto end = EndOfMessage(lines, error);
    std::string message = Joined(error, end);
    if (told.empty() || Tells(message, told)) told = std::move(message);
    if (end == lines.end()) break;
    traceback = end + 1;  // `end` says that another one occurred
  }
  return told;
}

// Returns what IPython tells of the cell of a notebook that failed, by the lines from `rule` on:
// where it was, and its exception; or "".
std::string OfACell(const Lines& lines, Lines::const_iterator rule) {
  const auto latest = Latest(lines, rule);
  const auto traceback = std::find_if(
      rule, latest, [](const std::string& line) { return !NameInIPythons(line).empty(); });
  if (traceback == latest) return "";
  const std::string error = OfIPythonsChain(lines, traceback);
  if (error.empty()) return "";
  std::string text;
  for (auto line = rule; line != traceback; ++line) {
    if (!IsRule(*line)) absl::StrAppend(&text, " ", absl::StripAsciiWhitespace(*line));
  }
  return absl::StrCat(text, " ", error);
}

// Returns whether os.environ refuses a value, which it does without the variable's name.
bool IsOfAVariable(absl::string_view line) {
  return absl::StartsWith(line, "TypeError: str expected, not ");
}

// "/w/train.py:224: UserWarning: text", as Python's module warnings prints.
bool IsAPythonWarning(absl::string_view line) {
  const size_t at = line.find("Warning: ");
  if (at == line.npos) return false;
  absl::string_view place = line.substr(0, line.rfind(' ', at) + 1);
  if (!absl::ConsumeSuffix(&place, ": ")) return false;
  const size_t number = place.find_last_not_of("0123456789") + 1;
  return number > 1 && number < place.size() && place[number - 1] == ':';
}

}  // namespace

bool EndsAMessage(absl::string_view line) {
  static constexpr absl::string_view kBegins[] = {"During handling of the above exception",
                                                  "The above exception was the direct cause",
                                                  "Exception ignored",
                                                  "Exception raised from ",  // c10's stack
                                                  "terminate called",
                                                  "Set the environment variable HYDRA_FULL_ERROR=1",
                                                  "\"\"\"",  // of what a worker's pool passes on
                                                  "[end of output]"};  // of what pip passes on
  return absl::StrContains(line, "Traceback (most recent call last)") || IsRule(line) ||
         absl::StrContains(line, "): application called MPI_Abort(") ||  // MPICH, for mpi4py
         BeginsAnew(line) || IsOfAnotherProgram(line) || IsAPythonWarning(line) ||
         std::any_of(std::begin(kBegins), std::end(kBegins), [&](absl::string_view begin) {
           return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), begin);
         });
}

bool Tells(absl::string_view account, absl::string_view cause) {
  const size_t colon = cause.find(": ");
  const absl::string_view text = colon == absl::string_view::npos ? cause : cause.substr(colon + 2);
  return absl::StrContains(account, text.size() < kLeastTelling ? cause : text);
}

bool IsSyntaxError(absl::string_view line) {
  return absl::StartsWith(line, "SyntaxError: ") || absl::StartsWith(line, "IndentationError: ") ||
         absl::StartsWith(line, "TabError: ");
}

std::string ExceptionMessage(const Lines& lines, Lines::const_iterator traceback,
                             Lines::const_iterator line) {
  if (!absl::StrContains(*line, ':') || IsSyntaxError(*line) || IsOfAVariable(*line)) {
    const std::string place = LastFrame(traceback, line);
    return place.empty() ? *line : absl::StrCat(*line, " at ", place);
  }
  const auto end = EndOfMessage(lines, line);
  std::string message = Joined(line, end);
  if (absl::EndsWith(message, ":") && end != lines.end() && IsRule(*end)) {
    const std::string of_a_cell = OfACell(lines, end);
    const bool has_no_text = message.find(':') == message.size() - 1;
    absl::StrAppend(&message, of_a_cell.empty() && has_no_text ? InAFrame(lines, end) : of_a_cell);
  }
  const bool of_a_peer = absl::StrContains(message, "trying to connect to (");
  return absl::StrCat(message, of_a_peer ? UnknownName(lines) : "");
}

}  // namespace tutti::launch
