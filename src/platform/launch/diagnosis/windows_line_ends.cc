#include "platform/launch/diagnosis/windows_line_ends.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSaid = "the file has Windows line ends (CRLF)";

bool ShowsCarriageReturn(absl::string_view error) {
  // As bash, env and LinesOf write it, and older shells.
  static constexpr absl::string_view kShown[] = {"\\r': ", "\\r''",
                                                 "\\r’: ", "\\r: ", "^M: bad interpreter"};
  const auto has = [error](absl::string_view part) { return absl::StrContains(error, part); };
  return std::any_of(std::begin(kShown), std::end(kShown), has);
}

// "line 4" of bash, "4" of dash.
bool IsLineNumber(absl::string_view word) {
  absl::ConsumePrefix(&word, "line ");
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// The scripts that a shell may speak of: of "run.sh: line 4: ./end.sh: cannot execute: required
// file not found" both.
std::vector<absl::string_view> ScriptsIn(absl::string_view error) {
  const std::vector<absl::string_view> words = absl::StrSplit(error, ": ");
  std::vector<absl::string_view> scripts;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const bool cannot_begin = words[i + 1] == "cannot execute" || words[i + 1] == "not found";
    const bool is_script =
        i == 0 ? IsLineNumber(words[1]) : cannot_begin && absl::StrContains(words[i], '/');
    if (is_script || (i == 0 && cannot_begin)) scripts.push_back(words[i]);
  }
  return scripts;
}

bool HasWindowsLineEnds(const fs::path& file) {
  const absl::StatusOr<base::UniqueFd> script = base::Open(file, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (!script.ok() || ::fstat(script->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return false;
  }
  std::array<char, 64 << 10> head;
  const ssize_t size = ::pread(script->get(), head.data(), head.size(), 0);
  const absl::string_view text(head.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return absl::EndsWith(text.substr(0, std::min(text.find('\n'), text.size())), "\r");
}

}  // namespace

std::string WithShownLineEnds(std::string error) {
  return ShowsCarriageReturn(error) ? absl::StrCat(error, ": ", kSaid) : error;
}

std::string WithLineEndsOfScript(std::string error, const fs::path& folder) {
  if (absl::StrContains(error, kSaid)) return error;
  for (const absl::string_view script : ScriptsIn(error)) {
    const fs::path file = (folder / std::string(script)).lexically_normal();
    const bool is_below = absl::StartsWith(file.native(), folder.native() + "/");
    if (is_below && HasWindowsLineEnds(file)) return absl::StrCat(error, ": ", kSaid);
  }
  return error;
}

}  // namespace tutti::launch
