#include "platform/launch/diagnosis/last_error.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/lost_peer.h"
#include "base/text/utf8.h"
#include "platform/launch/diagnosis/error_line.h"
#include "platform/launch/diagnosis/exception_message.h"
#include "platform/launch/diagnosis/native_error.h"
#include "platform/launch/diagnosis/printed_lines.h"
#include "platform/launch/diagnosis/python_exception.h"
#include "platform/launch/diagnosis/windows_line_ends.h"

namespace tutti::launch {
namespace {

constexpr size_t kMostCharacters = 500;
constexpr absl::string_view kReadOnly = "Read-only file system";  // the words of EROFS

// Returns the error of a script that Python cannot parse, for which it prints no traceback; ""
// without one.
std::string SyntaxError(const Lines& lines) {
  const auto error = std::find_if(lines.rbegin(), lines.rend(), IsSyntaxError);
  if (error == lines.rend()) return "";
  return ExceptionMessage(lines, lines.begin(), error.base() - 1);
}

std::string Exception(const Printed& printed) {
  std::string best = ExceptionGroup(printed.lines);
  if (best.empty()) best = PythonException(printed);
  if (best.empty()) best = SyntaxError(printed.lines);
  if (best.empty()) best = HydrasError(printed.lines);
  if (best.empty()) best = CppException(printed.lines);
  if (best.empty()) best = AssertionFailure(printed.lines);
  if (best.empty()) best = FatalPythonError(printed.lines);
  return best.empty() ? MpiError(printed.lines) : best;
}

std::string Failure(const Lines& lines) {
  std::string best = SignalOfStarted(lines);
  if (best.empty()) best = MpirunFailure(lines);
  if (best.empty()) best = SignalCaughtByOpenMpi(lines);
  if (best.empty()) best = MessageOfAll(lines);
  return best.empty() ? LineThatSaysError(lines, StartersTraceback(lines)) : best;
}

// The most that a starter which ended with an exception lets know of the process that it started.
std::string OfAStarted(const Lines& lines) {
  const std::string exception = StartersException(lines);
  if (exception.empty()) return "";
  std::string best = Failure(lines);
  if (best.empty()) best = ExitCodeOfStarted(lines);
  return best.empty() ? exception : best;
}

// Returns what a starter knows of the process whose loss its peers speak of; or "".
std::string LostByAStarter(const Lines& lines) {
  const std::string signal = SignalOfStarted(lines);
  if (!signal.empty() && !MayBeTheStarters(signal)) return signal;
  // One that ends with 1 has mostly shown an exception.
  const std::string code = ExitCodeOfStarted(lines);
  return absl::StrContains(code, "exit code 1 ") || absl::StrContains(code, "exit code -") ? ""
                                                                                           : code;
}

// Returns what a shell or another program failed at shortly before the exception of a script that
// misses a file; or "".
std::string WhyItIsMissing(const Lines& lines) {
  const auto traceback = FirstTraceback(lines);
  const auto from =
      traceback - lines.begin() > kOneFailure ? traceback - kOneFailure : lines.begin();
  const auto line = std::find_if(from, traceback, IsOfAnotherProgram);
  return line == traceback ? "" : *line;
}

// Returns `best`, or what it is a consequence of.
std::string CauseOf(std::string best, const Lines& lines) {
  std::string cause;
  if (base::SpeaksOfALostPeer(best)) cause = LostByAStarter(lines);
  if (absl::StrContains(best, "No such file or directory")) cause = WhyItIsMissing(lines);
  if (absl::StrContains(best, "device-side assert triggered")) cause = AssertionFailure(lines);
  return cause.empty() ? best : cause;
}

std::string InOneLine(Lines::const_iterator begin, Lines::const_iterator end) {
  return absl::StrJoin(begin, end, " ", [](std::string* text, const auto& line) {
    absl::StrAppend(text, absl::StripAsciiWhitespace(line));
  });
}

// Whether `line` may be the begin of a sentence that goes on below: of several words, and no
// sentence that has ended, progress or measure.
bool MayGoOn(absl::string_view line) {
  return absl::StrContains(line, ' ') &&
         !absl::ascii_isdigit(static_cast<unsigned char>(line.back())) &&
         !absl::StrContains(".!?%|]", line.substr(line.size() - 1));
}

bool GoesOn(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  return absl::ascii_islower(static_cast<unsigned char>(line[0]));
}

// Whether the lines are a sentence over several of them, and nothing else.
bool AreOneSentence(const Lines& lines) {
  constexpr size_t kMost = 4;
  return lines.size() > 1 && lines.size() <= kMost &&
         std::none_of(lines.begin(), lines.end(), EndsAMessage) &&
         std::all_of(lines.begin(), lines.end() - 1, MayGoOn) &&
         std::all_of(lines.begin() + 1, lines.end(), GoesOn);
}

// The last line, for rules of dashes say nothing, with those above it from the one that announced
// it ("no checkpoint in /data:"), or all of a sentence over several lines.
std::string LastLine(const Lines& lines) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& candidate) {
    return candidate.find_first_not_of("-=* ") != std::string::npos;
  });
  if (last == lines.rend()) return "";
  const auto earliest = lines.rend() - last > kOneFailure ? last + kOneFailure : lines.rend();
  auto first = std::find_if(last, earliest, [](const std::string& candidate) {
    return absl::EndsWith(candidate, ":") || EndsAMessage(candidate);
  });
  const bool announced = first != earliest && !EndsAMessage(*first);
  if (!announced && AreOneSentence(lines)) return InOneLine(lines.begin(), lines.end());
  if (!announced) first = last;
  return InOneLine(first.base() - 1, last.base());
}

// Shortens a long line to its beginning, which says what is wrong, and its end, which often says
// why.
std::string Bounded(absl::string_view line) {
  constexpr size_t kOfTheEnd = 160;  // bytes
  const std::string whole = base::BoundedUtf8(absl::StripAsciiWhitespace(line));
  const std::string begin = base::BoundedUtf8(whole, kMostCharacters);
  if (begin == whole) return whole;
  size_t end = whole.size() - kOfTheEnd;
  while (base::Utf8Length(absl::string_view(whole).substr(end)) == 0) ++end;
  return absl::StrCat(base::BoundedUtf8(whole, kMostCharacters - kOfTheEnd), " ",
                      whole.substr(end));
}

// A program that has printed more lines since has gone on.
constexpr size_t kLastLines = 64;  // lines

absl::string_view LastLines(absl::string_view text) {
  size_t begin = text.size();
  for (size_t lines = 0; lines <= kLastLines && begin != absl::string_view::npos && begin > 0;
       ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == absl::string_view::npos ? text : text.substr(begin);
}

// Returns the line that says an error in the output of a program that writes everything to stdout;
// "" without one.
std::string ErrorAmongResults(absl::string_view stdout_tail) {
  const Lines lines = LinesOf(LastLines(stdout_tail)).lines;
  return LineThatSaysError(lines, lines.end(), SaysErrorAmongResults);
}

// What a program called fatal on stdout stands before what another one, which may have cleaned up
// after it, said on stderr: which came first nobody can tell.
std::string WithLastWords(const std::string& failure, absl::string_view stdout_tail) {
  if (!IsOfAnotherProgram(failure)) return failure;
  const Lines lines = LinesOf(LastLines(stdout_tail)).lines;
  const std::string fatal = LineThatSaysError(lines, lines.end(), SaysFatal);
  return fatal.empty() ? failure : absl::StrCat(fatal, " (beside: ", failure, ")");
}

}  // namespace

std::string LastException(absl::string_view stderr_tail) {
  return Bounded(Exception(LinesOf(LastLines(stderr_tail))));
}

bool EndsWithException(absl::string_view stderr_tail) {
  const Lines lines = LinesOf(LastLines(stderr_tail)).lines;
  const auto traceback = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return absl::StrContains(line, "Traceback (most recent call last):");
  });
  if (traceback == lines.rend()) return false;
  const auto error = std::find_if(traceback.base(), lines.end(), [](const std::string& line) {
    return !absl::StartsWith(line, " ") && LooksLikeException(line);
  });
  return error != lines.end() && std::none_of(error + 1, lines.end(), EndsAMessage);
}

std::string ReadOnlyWrite(absl::string_view stderr_tail, absl::string_view stdout_tail) {
  constexpr size_t kLongest = 200;
  for (const absl::string_view tail : {stderr_tail, stdout_tail}) {
    if (!absl::StrContains(tail, kReadOnly)) continue;
    const Lines lines = LinesOf(tail).lines;
    const auto line = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& one) {
      return absl::StrContains(one, kReadOnly);
    });
    if (line != lines.rend()) {
      return base::BoundedUtf8(absl::StripAsciiWhitespace(*line), kLongest);
    }
  }
  return "";
}

std::string LastError(absl::string_view stderr_tail, absl::string_view stdout_tail) {
  const Printed err = LinesOf(stderr_tail), out = LinesOf(stdout_tail);
  std::string best = CauseOf(Exception(err), err.lines);
  if (best.empty()) best = WithLastWords(Failure(err.lines), stdout_tail);
  if (best.empty()) best = Exception(out);
  if (best.empty()) best = PytestFailure(out.lines);
  if (best.empty()) best = OfAStarted(err.lines);
  if (best.empty()) best = OfAStarted(out.lines);
  if (best.empty()) best = SignalOfStarted(out.lines);
  if (best.empty()) best = LastLine(err.lines);
  if (best.empty()) best = ErrorAmongResults(stdout_tail);
  return Bounded(WithShownLineEnds(std::move(best)));
}

MpiFailure MpiFailureIn(absl::string_view words) {
  const Lines lines = LinesOf(words).lines;
  const int rank = RankOfFailedCall(lines);
  const std::string error = Bounded(MpiError(lines));
  if (rank >= 0) return {.rank = rank, .error = error};
  if (const int who = RankThatLeft(lines); who >= 0) {
    return {.rank = who,
            .error = "left MPI without MPI_Finalize, for which mpirun ends the others",
            .left = true};
  }
  // Its own launcher says more, if it has heard of the rank by then.
  if (const int who = RankThatWasKilled(lines); who >= 0) {
    return {.rank = who,
            .error = "was killed by signal 9 (SIGKILL), says mpirun, which ends the others",
            .left = true};
  }
  return {.rank = RankOfAbort(lines), .error = error, .abort = true};
}

}  // namespace tutti::launch
