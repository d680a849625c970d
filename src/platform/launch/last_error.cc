#include "platform/launch/last_error.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "platform/launch/exception_message.h"

namespace tutti::launch {
namespace {

using Lines = std::vector<std::string>;

constexpr size_t kMostCharacters = 300;

// PyTorch begins the lines of an exception with "[rank0]: ".
absl::string_view WithoutRank(absl::string_view line) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[rank")) return line;
  while (!rest.empty() && absl::ascii_isdigit(static_cast<unsigned char>(rest[0]))) {
    rest.remove_prefix(1);
  }
  return absl::ConsumePrefix(&rest, "]: ") ? rest : line;
}

// Without terminal colours, and only the last state of a line that was drawn over (progress bars).
std::string Plain(absl::string_view line) {
  line = absl::StripTrailingAsciiWhitespace(line);
  if (const size_t redrawn = line.rfind('\r'); redrawn != absl::string_view::npos) {
    line = line.substr(redrawn + 1);
  }
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      for (i += 2; i < line.size() && !absl::ascii_isalpha(static_cast<unsigned char>(line[i]));)
        ++i;
    } else if (static_cast<unsigned char>(line[i]) >= ' ' || line[i] == '\t') {
      plain += line[i];
    }
  }
  return std::string(WithoutRank(plain));
}

// "ValueError: text", "torch.cuda.OutOfMemoryError: …", "KeyboardInterrupt".
bool LooksLikeException(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(':'));
  if (name.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(name[0]))) return false;
  const bool is_name = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.';
  });
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  return is_name && absl::ascii_isupper(static_cast<unsigned char>(last.empty() ? 'x' : last[0]));
}

// What a starter of processes says when one of them has failed: torchrun, accelerate, mpirun's
// wrappers. The process's own exception or error, printed before, says why.
bool IsOfAStarter(absl::string_view line) {
  return absl::StrContains(line, "torch.distributed.elastic.multiprocessing") ||
         absl::StartsWith(line, "subprocess.CalledProcessError");
}

// "ExceptionGroup: two failed (2 sub-exceptions): ValueError: one"; or empty.
std::string ExceptionGroup(const Lines& lines) {
  auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& candidate) {
    return absl::StrContains(candidate, "+ Exception Group Traceback (most recent call last):");
  });
  std::vector<absl::string_view> exceptions;  // the group's and the first of its own
  for (; line != lines.end() && exceptions.size() < 2; ++line) {
    const size_t bar = line->find("| ");
    if (bar == std::string::npos) continue;
    const absl::string_view text = absl::string_view(*line).substr(bar + 2);
    if (LooksLikeException(text) && absl::StrContains(text, ':')) exceptions.push_back(text);
  }
  return absl::StrJoin(exceptions, ": ");
}

// What a destructor throws is printed and passed over.
bool IsIgnored(const Lines& lines, Lines::const_iterator traceback) {
  return traceback != lines.begin() && absl::StartsWith(*(traceback - 1), "Exception ignored in");
}

// The last exception under a "Traceback (most recent call last):" that is a starter's, or is not.
std::string PythonException(const Lines& lines, bool of_a_starter) {
  auto end = lines.end();
  while (true) {
    const auto traceback =
        std::find_if(std::make_reverse_iterator(end), lines.rend(), [](const std::string& line) {
          return absl::StrContains(line, "Traceback (most recent call last):");
        });
    if (traceback == lines.rend()) return "";
    const auto last = end;
    const auto line = std::find_if(traceback.base(), last, [](const std::string& candidate) {
      return !absl::StartsWith(candidate, " ") && LooksLikeException(candidate);
    });
    end = traceback.base() - 1;
    if (line == last || IsIgnored(lines, end) || IsOfAStarter(*line) != of_a_starter) continue;
    return of_a_starter ? *line : ExceptionMessage(lines, end, line);
  }
}

// What torchrun says of a process that a signal ended, which printed no exception: "Signal 9
// (SIGKILL) received by PID 71".
std::string SignalOfStarted(const Lines& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const size_t at = line->find("Signal ");
    if (at != std::string::npos && absl::StrContains(*line, ") received by PID ")) {
      return absl::StrCat("a process that it started was ended: ", line->substr(at));
    }
  }
  return "";
}

// And of the first that failed by itself: "exitcode  : 3 (pid: 71)".
std::string ExitCodeOfStarted(const Lines& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(*line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(parts.first) != "exitcode") continue;
    return absl::StrCat("a process that it started failed with exit code ",
                        absl::StripAsciiWhitespace(parts.second));
  }
  return "";
}

// "std::runtime_error: no such shard", of an exception that nobody caught.
std::string CppException(const Lines& lines) {
  absl::string_view what;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::string_view text = absl::StripLeadingAsciiWhitespace(*line);
    if (what.empty() && absl::ConsumePrefix(&text, "what():")) {
      what = absl::StripAsciiWhitespace(text);
    } else if (absl::ConsumePrefix(&text, "terminate called after throwing an instance of '")) {
      const absl::string_view type = text.substr(0, text.rfind('\''));
      if (what.empty() || what == type) return std::string(what.empty() ? *line : what);
      return absl::StrCat(type, ": ", what);
    } else if (what.empty() && absl::StartsWith(text, "terminate called without")) {
      return std::string(text);
    }
  }
  return std::string(what);
}

// "Fatal Python error: Segmentation fault at model.py:3 in forward", which Python says of a signal
// with PYTHONFAULTHANDLER=1; its innermost frame comes first.
std::string FatalPythonError(const Lines& lines) {
  const auto begins = [](absl::string_view prefix) {
    return [prefix](const std::string& line) { return absl::StartsWith(line, prefix); };
  };
  const auto error = std::find_if(lines.begin(), lines.end(), begins("Fatal Python error: "));
  if (error == lines.end()) return "";
  const auto thread = std::find_if(error, lines.end(), begins("Current thread "));
  const auto frame = std::find_if(thread, lines.end(), begins("  File \""));
  if (frame == lines.end()) return *error;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*frame, absl::MaxSplits("\", line ", 1));
  return absl::StrCat(*error, " at ", parts.first.substr(parts.first.find_last_of("/\"") + 1), ":",
                      parts.second);
}

// "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 7.", which Open
// MPI says on two lines.
std::string MpiAbort(const Lines& lines) {
  const auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& candidate) {
    return absl::StartsWith(candidate, "MPI_ABORT was invoked on rank ");
  });
  if (line == lines.end()) return "";
  const bool goes_on = line + 1 != lines.end() && absl::StartsWith(*(line + 1), "with errorcode");
  return goes_on ? absl::StrCat(*line, " ", *(line + 1)) : *line;
}

bool SaysError(const std::string& line) {
  static constexpr absl::string_view kMarks[] = {"error:",
                                                 "error ",
                                                 "fatal",
                                                 "command not found",
                                                 "unbound variable",
                                                 "cannot allocate memory",
                                                 "no such file",
                                                 "assertion",
                                                 "permission denied",
                                                 "out of memory",
                                                 "segmentation fault",
                                                 "killed"};
  if (IsOfAStarter(line)) return false;
  const std::string lower = absl::AsciiStrToLower(line);
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](absl::string_view mark) { return absl::StrContains(lower, mark); });
}

Lines LinesOf(absl::string_view text) {
  Lines lines;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    std::string line = Plain(raw);
    if (!absl::StripAsciiWhitespace(line).empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// Of a script that Python cannot read, which has no traceback.
std::string SyntaxError(const Lines& lines) {
  const auto error = std::find_if(lines.rbegin(), lines.rend(), IsSyntaxError);
  if (error == lines.rend()) return "";
  return ExceptionMessage(lines, lines.begin(), error.base() - 1);
}

std::string Exception(const Lines& lines) {
  std::string best = ExceptionGroup(lines);
  if (best.empty()) best = PythonException(lines, false);
  if (best.empty()) best = SyntaxError(lines);
  if (best.empty()) best = CppException(lines);
  if (best.empty()) best = FatalPythonError(lines);
  return best.empty() ? MpiAbort(lines) : best;
}

std::string LastLineThatSaysError(const Lines& lines) {
  const auto error = std::find_if(lines.rbegin(), lines.rend(), SaysError);
  return error == lines.rend() ? "" : *error;
}

// The most that a starter which ended with an exception lets know of the process that it started.
std::string OfAStarted(const Lines& lines) {
  const std::string exception = PythonException(lines, true);
  if (exception.empty()) return "";
  std::string best = SignalOfStarted(lines);
  if (best.empty()) best = LastLineThatSaysError(lines);
  if (best.empty()) best = ExitCodeOfStarted(lines);
  return best.empty() ? exception : best;
}

// What a program has said since tells that it went on.
constexpr size_t kLately = 64;

}  // namespace

std::string LastException(absl::string_view stderr_tail) {
  Lines lines = LinesOf(stderr_tail);
  if (lines.size() > kLately) lines.erase(lines.begin(), lines.end() - kLately);
  return base::BoundedUtf8(absl::StripAsciiWhitespace(Exception(lines)), kMostCharacters);
}

std::string LastError(absl::string_view stderr_tail, absl::string_view stdout_tail) {
  const Lines lines = LinesOf(stderr_tail);
  const Lines out = LinesOf(stdout_tail);
  std::string best = Exception(lines);
  if (best.empty()) best = SignalOfStarted(lines);
  if (best.empty()) best = LastLineThatSaysError(lines);
  if (best.empty()) best = Exception(out);
  if (best.empty()) best = OfAStarted(lines);
  if (best.empty()) best = OfAStarted(out);
  if (best.empty() && !lines.empty()) best = lines.back();
  return base::BoundedUtf8(absl::StripAsciiWhitespace(best), kMostCharacters);
}

}  // namespace tutti::launch
