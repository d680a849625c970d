#include "platform/health/check_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/deadline.h"

namespace tutti::health {
namespace {

using Outcome = NodeCheck::Outcome;

constexpr size_t kLongestWord = 300;  // of a program, in bytes
constexpr size_t kMostOutput = 64 << 10;

}  // namespace

std::string FirstWords(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    std::string words(absl::StripAsciiWhitespace(line.substr(0, kLongestWord)));
    std::replace_if(
        words.begin(), words.end(),
        [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }, ' ');
    return words;
  }
  return "";
}

std::string WordsOf(const base::CommandResult& result) {
  const std::string said = FirstWords(result.out);
  return said.empty() ? FirstWords(result.err) : said;
}

absl::StatusOr<base::CommandResult> RunWithin(std::vector<std::string> arguments,
                                              absl::Duration limit,
                                              const std::atomic<bool>& abandoned) {
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = base::CurrentEnvironment();
  return base::RunCommand(options, "", base::Deadline::After(limit), kMostOutput, &abandoned);
}

NodeCheck CheckByProgram(const spec::NodeChecks& checks, const std::atomic<bool>& abandoned) {
  const absl::Duration limit = absl::Seconds(checks.timeout_seconds);
  const auto result = RunWithin({"/bin/sh", "-c", checks.command}, limit, abandoned);
  if (absl::IsDeadlineExceeded(result.status())) {
    return {"program", Outcome::kIll,
            absl::StrCat("it did not end within ", absl::FormatDuration(limit))};
  }
  if (!result.ok()) return {"program", Outcome::kUnknown, std::string(result.status().message())};
  const std::string said = WordsOf(*result);
  if (result->exit.ok()) return {"program", Outcome::kWell, said.empty() ? "exit code 0" : said};
  // The shell's own codes: it could not be found, or not be run.
  const bool ran =
      result->exit.signal != 0 || (result->exit.code != 126 && result->exit.code != 127);
  return {"program", ran ? Outcome::kIll : Outcome::kUnknown,
          said.empty() ? absl::StrCat("it ended with ", result->exit.ToString()) : said};
}

}  // namespace tutti::health
