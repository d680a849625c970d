#include "platform/launch/diagnosis/native_error.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/launch/diagnosis/python_frame.h"

namespace tutti::launch {
namespace {

using Line = Lines::const_iterator;

Line FindBegin(Line begin, Line end, absl::string_view prefix) {
  return std::find_if(begin, end, [prefix](const std::string& candidate) {
    return absl::StartsWith(candidate, prefix);
  });
}

Line FindIn(Line begin, Line end, absl::string_view words) {
  return std::find_if(begin, end, [words](const std::string& candidate) {
    return absl::StrContains(candidate, words);
  });
}

bool IsRuler(const std::string& line) { return absl::StartsWith(line, "--------------------"); }

// Open MPI's message from `line` to the rule below it, without the advice that follows.
std::string Paragraph(Line line, Line end) {
  std::string text;
  for (; line != end && !IsRuler(*line) && !absl::StartsWith(*line, "NOTE: "); ++line) {
    absl::StrAppend(&text, text.empty() ? "" : " ", absl::StripAsciiWhitespace(*line));
  }
  return text;
}

// The last line that a program printed before `notice`, as what led to it; or "".
std::string After(const Lines& lines, Line notice) {
  while (notice != lines.begin() && IsRuler(*(notice - 1))) --notice;
  return notice == lines.begin() ? "" : absl::StrCat(" after: ", *(notice - 1));
}

std::string MpiAbort(const Lines& lines) {
  auto line = FindBegin(lines.begin(), lines.end(), "MPI_ABORT was invoked on rank ");
  if (line != lines.end()) return absl::StrCat(Paragraph(line, lines.end()), After(lines, line));
  line = FindIn(lines.begin(), lines.end(), "): application called MPI_Abort(");  // MPICH
  return line == lines.end() ? "" : absl::StrCat(*line, After(lines, line));
}

// "[n1:71] *** An error occurred in MPI_Recv" … "[n1:71] *** MPI_ERR_TRUNCATE: message truncated".
std::string ErrorOfOpenMpi(const Lines& lines) {
  static constexpr char kMark[] = "] *** ";
  const auto call = FindIn(lines.begin(), lines.end(), "] *** An error occurred in ");
  const auto error = FindIn(call, lines.end(), "] *** MPI_ERR_");
  if (error == lines.end()) return "";
  const auto text = [&](Line line) { return line->substr(line->find(kMark) + sizeof kMark - 1); };
  return absl::StrCat(text(call), ": ", text(error));
}

// "btl" of "Framework: btl" below `line`, before the paragraph's end; or "".
absl::string_view FieldBelow(Line line, Line end, absl::string_view name) {
  for (; line != end && !IsRuler(*line); ++line) {
    absl::string_view text = *line;
    if (absl::ConsumePrefix(&text, name)) return absl::StripAsciiWhitespace(text);
  }
  return "";
}

// Names the component that a user asked for and this Open MPI does not have; "" if none is missing.
// Open MPI prints it before the MPI_Init that fails for it, and more plainly.
std::string MissingComponent(const Lines& lines) {
  const auto line = FindBegin(lines.begin(), lines.end(), "A requested component was not found");
  const absl::string_view component = FieldBelow(line, lines.end(), "Component:");
  const absl::string_view framework = FieldBelow(line, lines.end(), "Framework:");
  if (component.empty() || framework.empty()) return "";
  return absl::StrCat("Open MPI has no component \"", component, "\" of its framework ", framework,
                      ", or cannot load it: OMPI_MCA_", framework, " or --mca ", framework,
                      " asks for it");
}

// The number before `rest`, which ends the text; or -1.
int NumberIn(absl::string_view text, absl::string_view rest) {
  int number = -1;
  return absl::ConsumeSuffix(&text, rest) && absl::SimpleAtoi(text, &number) ? number : -1;
}

// The number between `notice` and " with PID", with which mpirun names a rank; or -1.
int RankBehind(absl::string_view notice, absl::string_view line) {
  const absl::string_view rest = line.substr(line.find(notice) + notice.size());
  return NumberIn(rest.substr(0, rest.find(" with PID")), "");
}

// "MPIR_Wait(745)...........: text"
bool IsOfAStackOfMpich(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view place = absl::StripSuffix(line.substr(0, colon), ".");
  const size_t last = place.find_last_not_of('.');
  return last != absl::string_view::npos && place[last] == ')' && absl::StrContains(place, '(');
}

// "Abort(71) on node 1 (rank 1 in comm 0): Fatal error in internal_Recv: Message truncated, error
// stack:", and the innermost of that stack, which comes last.
std::string ErrorOfMpich(const Lines& lines) {
  const auto error = FindIn(lines.begin(), lines.end(), "): Fatal error in ");
  if (error == lines.end()) return "";
  const auto end = std::find_if_not(error + 1, lines.end(), IsOfAStackOfMpich);
  return end == error + 1 ? *error : absl::StrCat(*error, " ", *(end - 1));
}

bool IsOfAnEndedProcess(absl::string_view paragraph) {
  static constexpr absl::string_view kWords[] = {
      "terminated normally, but", "one or more processes exited", "has exited due to process rank",
      "noticed that process rank"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](absl::string_view words) { return absl::StrContains(paragraph, words); });
}

// Where a starter names the signal that ended a process, or npos.
size_t SignalIn(absl::string_view line) {
  static constexpr std::array<std::pair<absl::string_view, absl::string_view>, 4> kWords = {{
      {"Signal ", ") received by PID "},        // torchrun
      {"process rank ", " exited on signal "},  // Open MPI
      {"KILLED BY SIGNAL: ", ")"},              // Intel MPI
      {"EXIT STRING: ", " (signal "},           // MPICH
  }};
  for (const auto& [begin, also] : kWords) {
    const size_t at = line.find(begin);
    if (at != absl::string_view::npos && absl::StrContains(line, also)) return at;
  }
  return absl::string_view::npos;
}

}  // namespace

bool MayBeTheStarters(absl::string_view line) {
  return absl::StrContains(line, "SIGTERM") || absl::StrContains(line, "SIGNAL: 9") ||
         absl::StrContains(line, "SIGNAL: 15");
}

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

std::string AssertionFailure(const Lines& lines) {
  const auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& candidate) {
    return absl::StrContains(candidate, "Assertion `") && absl::StrContains(candidate, "failed");
  });
  return line == lines.end() ? "" : *line;
}

std::string FatalPythonError(const Lines& lines) {
  const auto error = FindBegin(lines.begin(), lines.end(), "Fatal Python error: ");
  if (error == lines.end()) return "";
  const auto thread = FindBegin(error, lines.end(), "Current thread ");
  for (auto line = thread; line != lines.end(); ++line) {
    const std::optional<PythonFrame> frame = FrameIn(*line);  // the innermost comes first
    if (!frame) continue;
    return absl::StrCat(*error, " at ", frame->file(), ":", frame->line, " in ", frame->function);
  }
  return *error;
}

std::string MpiError(const Lines& lines) {
  std::string best = MissingComponent(lines);
  if (best.empty()) best = ErrorOfOpenMpi(lines);
  if (best.empty()) best = ErrorOfMpich(lines);
  return best.empty() ? MpiAbort(lines) : best;
}

int RankOfFailedCall(const Lines& lines) {
  const auto call = FindIn(lines.begin(), lines.end(), "] *** An error occurred in ");
  const auto line = FindIn(call, lines.end(), "] *** reported by process [");
  if (line == lines.end()) return -1;
  return NumberIn(absl::string_view(*line).substr(line->rfind(',') + 1), "]");
}

int RankOfAbort(const Lines& lines) {
  static constexpr char kNotice[] = "MPI_ABORT was invoked on rank ";
  const auto line = FindBegin(lines.begin(), lines.end(), kNotice);
  if (line == lines.end()) return -1;
  return NumberIn(absl::string_view(*line).substr(sizeof kNotice - 1),
                  " in communicator MPI_COMM_WORLD");
}

int RankThatLeft(const Lines& lines) {
  static constexpr char kNotice[] = " has exited due to process rank ";
  const auto line = FindIn(lines.begin(), lines.end(), kNotice);
  if (line == lines.end() || line + 1 == lines.end()) return -1;
  if (!absl::StrContains(*(line + 1), " exiting improperly")) return -1;
  return RankBehind(kNotice, *line);
}

int RankThatWasKilled(const Lines& lines) {
  static constexpr char kNotice[] = " noticed that process rank ";
  const auto line = FindIn(lines.begin(), lines.end(), kNotice);
  if (line == lines.end()) return -1;
  // Long names break it.
  const std::string notice =
      line + 1 == lines.end() ? *line : absl::StrCat(*line, " ", *(line + 1));
  if (!absl::StrContains(notice, " exited on signal 9 ")) return -1;
  return RankBehind(kNotice, notice);
}

std::string MpirunFailure(const Lines& lines) {
  for (auto rule = std::find_if(lines.begin(), lines.end(), IsRuler); rule != lines.end();
       rule = std::find_if(rule + 1, lines.end(), IsRuler)) {
    const std::string paragraph = Paragraph(rule + 1, lines.end());
    static constexpr absl::string_view kNames[] = {"mpirun", "prte",     "PRTE",
                                                   "PRRTE",  "Open MPI", "MCA parameter"};
    const bool of_mpi =
        std::any_of(std::begin(kNames), std::end(kNames),
                    [&](absl::string_view name) { return absl::StrContains(paragraph, name); });
    if (of_mpi && !IsOfAnEndedProcess(paragraph)) return paragraph;
  }
  return "";
}

std::string SignalCaughtByOpenMpi(const Lines& lines) {
  const auto begin = FindIn(lines.begin(), lines.end(), "] *** Process received signal ***");
  const auto end = FindIn(begin, lines.end(), "] *** End of error message ***");
  // "Segmentation fault (11)" of "[n1:71] Signal: Segmentation fault (11)"
  const auto field = [&](const std::string& name) -> std::string {
    const auto line = FindIn(begin, end, name);
    return line == end ? "" : line->substr(line->find(name) + name.size());
  };
  const std::string signal = field("] Signal: "), code = field("] Signal code: ");
  const std::string address = field("] Failing at address: ");
  if (signal.empty()) return "";
  std::string frame = field("] [ 1] ");  // [ 0] is the handler's
  frame = frame.substr(0, frame.find(")[0x") + 1);
  return absl::StrCat(signal, code.empty() ? "" : ": ", code, address.empty() ? "" : " at address ",
                      address, frame.empty() ? "" : ", in ", frame);
}

std::string PytestFailure(const Lines& lines) {
  const auto summary = FindIn(lines.begin(), lines.end(), "= short test summary info =");
  const auto is_of_a_test = [](const std::string& line) {
    return absl::StartsWith(line, "FAILED ") || absl::StartsWith(line, "ERROR ");
  };
  const auto first = std::find_if(summary, lines.end(), is_of_a_test);
  if (first == lines.end()) return "";
  const auto count = std::count_if(first, lines.end(), is_of_a_test);
  return count == 1 ? *first : absl::StrCat(count, " tests failed, the first: ", *first);
}

std::string SignalOfStarted(const Lines& lines) {
  std::string best;
  for (auto begin = lines.begin(); begin != lines.end(); ++begin) {
    const bool goes_on = absl::EndsWith(*begin, " exited on") && begin + 1 != lines.end();
    const std::string line = goes_on ? absl::StrCat(*begin, " ", *(begin + 1)) : *begin;
    const size_t at = SignalIn(line);
    if (at == std::string::npos || (!best.empty() && !MayBeTheStarters(best))) continue;
    best = absl::StrCat("a process that it started was ended: ", line.substr(at));
  }
  return best;
}

std::string ExitCodeOfStarted(const Lines& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(*line, absl::MaxSplits(':', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    if (name != "exitcode" && name != "Exit code") continue;  // torchrun's, Open MPI's
    return absl::StrCat("a process that it started failed with exit code ",
                        absl::StripAsciiWhitespace(parts.second));
  }
  return "";
}

}  // namespace tutti::launch
