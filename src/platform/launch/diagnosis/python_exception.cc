#include "platform/launch/diagnosis/python_exception.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/lost_peer.h"
#include "base/text/utf8.h"
#include "platform/launch/diagnosis/error_line.h"
#include "platform/launch/diagnosis/exception_message.h"
#include "platform/launch/diagnosis/python_frame.h"

namespace tutti::launch {
namespace {

using Iterator = Lines::const_iterator;

constexpr std::ptrdiff_t kShownLately = 64;  // lines
// Characters that are kept of an account and of its cause, so that one leaves place for the other.
constexpr size_t kOfAnAccount = 300, kOfACause = 160;
constexpr char kOfAName[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

struct Traceback {
  Iterator begin, error;
  bool goes_on = false;  // it is of the same chain as the one before
  bool by_from = false;  // and raised from that
  std::string message;
};

bool IsTraceback(const std::string& line) {
  return absl::StrContains(line, "Traceback (most recent call last):");
}

bool IsFrame(const std::string& line) { return FrameIn(line).has_value(); }

bool AreOfOneFunction(const PythonFrame& a, const PythonFrame& b) {
  return a.path == b.path && a.function == b.function;
}

// "ValueError" of "ValueError: text".
absl::string_view NameOf(absl::string_view error) { return error.substr(0, error.find(':')); }

// Whether a plain expression can fail so, without any `raise`.
bool MayBeOfAnExpression(absl::string_view error) {
  static constexpr absl::string_view kNames[] = {
      "KeyError",  "IndexError",        "AttributeError",   "TypeError",
      "NameError", "UnboundLocalError", "ZeroDivisionError"};
  return std::find(std::begin(kNames), std::end(kNames), NameOf(error)) != std::end(kNames);
}

// Returns whether `code` is from the middle of a statement over several lines, of which Python up
// to 3.7 shows a later one than `raise Error(`: text, an argument, or more brackets that close than
// open.
bool IsFromWithinAStatement(absl::string_view code) {
  const size_t name = std::min(code.find_first_not_of(kOfAName), code.size());
  const absl::string_view rest = code.substr(name);
  const auto count = [&](absl::string_view brackets) {
    return std::count_if(code.begin(), code.end(),
                         [&](char c) { return absl::StrContains(brackets, c); });
  };
  const bool is_text = name <= 2 && (absl::StartsWith(rest, "\"") || absl::StartsWith(rest, "'"));
  const bool is_argument = name > 0 && absl::StartsWith(rest, "=") && !absl::StartsWith(rest, "==");
  return is_text || is_argument || rest.empty() || count(")]}") > count("([{") ||
         absl::EndsWith(code, ",");
}

// Whether `raise` made `error`, by the line of code that was shown for it.
bool WasRaisedBy(absl::string_view code, absl::string_view error) {
  code = absl::StripAsciiWhitespace(code);
  const bool is_raise = absl::StartsWith(code, "raise ") || absl::StrContains(code, ": raise ") ||
                        absl::StrContains(code, "; raise ");
  if (is_raise) return true;
  return IsFromWithinAStatement(code) && !MayBeOfAnExpression(error);
}

// Whether `raise` made the second, in the function that had caught the first.
bool IsToldInOtherWords(const Traceback& first, const Traceback& second) {
  const auto caught = std::find_if(first.begin, first.error, IsFrame);
  const auto raised = std::find_if(std::make_reverse_iterator(second.error),
                                   std::make_reverse_iterator(second.begin), IsFrame);
  if (caught == first.error || raised.base() == second.begin) return false;
  const auto code = raised.base();  // the line after the frame's
  return AreOfOneFunction(*FrameIn(*caught), *FrameIn(*raised)) && code != second.error &&
         WasRaisedBy(*code, *second.error);
}

bool SaysFrom(absl::string_view line) {
  return absl::StartsWith(line, "The above exception was the direct cause");
}

bool SaysThatItGoesOn(absl::string_view line) {
  return SaysFrom(line) || absl::StartsWith(line, "During handling of the above exception");
}

// The first of a chain whose traceback is at `begin`; one that was never raised has none of its
// own.
Iterator Root(const Lines& lines, Iterator begin) {
  while (begin - lines.begin() >= 2 && SaysThatItGoesOn(*(begin - 1)) &&
         LooksLikeException(*(begin - 2))) {
    begin -= 2;
  }
  return begin;
}

// The traceback that begins at `begin`, if it has an exception and nobody has passed over it.
std::optional<Traceback> TracebackAt(const Lines& lines, Iterator begin) {
  const auto next = std::find_if(begin + 1, lines.end(), IsTraceback);
  const auto error = std::find_if(begin + 1, next, [](const std::string& line) {
    return !absl::StartsWith(line, " ") && LooksLikeException(line);
  });
  if (error == next) return std::nullopt;
  Traceback traceback{.begin = begin, .error = error};
  if (begin != lines.begin()) {
    const std::string& before = *(begin - 1);
    if (absl::StartsWith(before, "Exception ignored")) return std::nullopt;
    traceback.by_from = SaysFrom(before);
    traceback.goes_on = SaysThatItGoesOn(before);
  }
  traceback.message = ExceptionMessage(lines, begin, error);
  return traceback;
}

// Returns what a program said shortly before `traceback`, which is of one that started it and knows
// but its exit code; or "".
std::string WordsOfAStarted(const Lines& lines, const Traceback& traceback) {
  if (!launch::IsOfAStarter(*traceback.error)) return "";
  const Iterator from = traceback.begin - std::min(kOneFailure, traceback.begin - lines.begin());
  const Lines before(from, traceback.begin);
  return LineThatSaysError(before, before.end());
}

// Returns whether JAX says here, before the exception, that its own frames are left out, or which.
bool IsOfJax(absl::string_view error) {
  const absl::string_view name = NameOf(error);
  return absl::EndsWith(name, "SimplifiedTraceback") ||
         absl::EndsWith(name, "UnfilteredStackTrace") ||
         absl::EndsWith(name, "JaxStackTraceBeforeTransformation");
}

using Chain = std::vector<Traceback>;

std::vector<Chain> ChainsOf(const Lines& lines) {
  std::vector<Chain> chains;
  for (auto begin = std::find_if(lines.begin(), lines.end(), IsTraceback); begin != lines.end();
       begin = std::find_if(begin + 1, lines.end(), IsTraceback)) {
    std::optional<Traceback> traceback = TracebackAt(lines, begin);
    if (!traceback) continue;
    const Iterator root = chains.empty() ? Root(lines, begin) : begin;
    if (!traceback->goes_on || chains.empty()) chains.emplace_back();
    if (IsOfJax(*traceback->error)) continue;
    if (root != begin && !IsOfJax(*root)) {
      chains.back().push_back({.begin = root, .error = root, .message = *root});
    }
    if (const std::string words = WordsOfAStarted(lines, *traceback); !words.empty()) {
      traceback->message = words;
    }
    chains.back().push_back(*std::move(traceback));
  }
  return chains;
}

// The first exception of `chain` from `at` on, in the last words that were found for it; `at` is
// moved behind those.
std::string Account(const Chain& chain, size_t& at) {
  const Traceback& cause = chain[at];
  while (++at < chain.size()) {
    if (!chain[at].by_from && !IsToldInOtherWords(chain[at - 1], chain[at])) break;
  }
  const std::string& account = chain[at - 1].message;
  if (&cause == &chain[at - 1]) return account;
  const std::string begin = base::BoundedUtf8(account, kOfAnAccount);
  if (Tells(begin, cause.message)) return account;
  return absl::StrCat(begin, " (caused by ", base::BoundedUtf8(cause.message, kOfACause), ")");
}

std::string ChainInOneLine(const Chain& chain) {
  size_t at = 0;
  const std::string first = Account(chain, at);
  std::string others;
  while (at < chain.size()) {
    const std::string other = Account(chain, at);
    if (Tells(first, other) || Tells(others, other) || base::SpeaksOfALostPeer(other)) continue;
    absl::StrAppend(&others, others.empty() ? "" : "; then: ", other);
  }
  return others.empty() ? first : absl::StrCat(first, " (while that was handled: ", others, ")");
}

bool IsOfAStarter(const Chain& chain) { return launch::IsOfAStarter(*chain.back().error); }

// Returns the exception that ended one process, or several whose output cannot be told apart; "" if
// there is none.
std::string OfOneStream(const Lines& lines) {
  std::vector<Chain> chains = ChainsOf(lines);
  chains.erase(std::remove_if(chains.begin(), chains.end(),
                              [](const Chain& chain) { return IsOfAStarter(chain); }),
               chains.end());
  if (chains.empty()) return "";
  const std::string last = ChainInOneLine(chains.back());
  if (!base::SpeaksOfALostPeer(last)) return last;
  for (auto chain = chains.rbegin() + 1; chain != chains.rend(); ++chain) {
    if (chains.back().front().begin - chain->back().error > kShownLately) break;
    const std::string other = ChainInOneLine(*chain);
    if (!base::SpeaksOfALostPeer(other)) return other;
  }
  return last;
}

}  // namespace

std::string PythonException(const Printed& printed) {
  std::string best;
  const auto consider = [&](const Lines& lines) {
    const std::string found = OfOneStream(lines);
    const bool better =
        best.empty() || (base::SpeaksOfALostPeer(best) && !base::SpeaksOfALostPeer(found));
    if (!found.empty() && better) best = found;
  };
  for (const Lines& rank : printed.ranks) consider(rank);
  consider(printed.others);
  return best;
}

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

Lines::const_iterator StartersTraceback(const Lines& lines) {
  for (const Chain& chain : ChainsOf(lines)) {
    if (IsOfAStarter(chain)) return chain.front().begin;
  }
  return lines.end();
}

std::string StartersException(const Lines& lines) {
  const std::vector<Chain> chains = ChainsOf(lines);
  const auto chain = std::find_if(chains.rbegin(), chains.rend(),
                                  [](const Chain& one) { return IsOfAStarter(one); });
  return chain == chains.rend() ? "" : *chain->back().error;
}

Lines::const_iterator FirstTraceback(const Lines& lines) {
  return std::find_if(lines.begin(), lines.end(), IsTraceback);
}

}  // namespace tutti::launch
