// InFileOrder of job_file.h.
#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/faults.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {

using Files = std::vector<std::string>;

struct FaultPlace {
  std::string file;  // empty: none
  int line = 0;      // 0: the file as a whole
};

// Where "FILE:LINE: message" begins with a line's number, after `at`; npos if nowhere.
size_t EndOfFileName(absl::string_view fault, size_t at = 0) {
  for (at = fault.find(':', at); at != absl::string_view::npos; at = fault.find(':', at + 1)) {
    size_t end = at + 1;
    while (end < fault.size() && absl::ascii_isdigit(static_cast<unsigned char>(fault[end]))) ++end;
    if (end > at + 1 && absl::StartsWith(fault.substr(end), ": ")) return at;
  }
  return absl::string_view::npos;
}

int LineAt(absl::string_view fault, size_t colon) {
  int line = 0;
  const absl::string_view rest = fault.substr(colon + 1);
  return absl::SimpleAtoi(rest.substr(0, rest.find(':')), &line) ? line : 0;
}

// Finds the place at the beginning of a fault. Known file names are tried first, since a message
// may quote another place.
FaultPlace FaultPlaceOf(absl::string_view fault, const Files& files) {
  for (const std::string& file : files) {
    if (file.empty() || !absl::StartsWith(fault, file)) continue;
    if (absl::StartsWith(fault.substr(file.size()), ": ")) return {file, 0};
    if (EndOfFileName(fault, file.size()) == file.size()) return {file, LineAt(fault, file.size())};
  }
  const size_t end = EndOfFileName(fault);
  if (end == absl::string_view::npos) return {};
  return {std::string(fault.substr(0, end)), LineAt(fault, end)};
}

void AddNew(const std::string& file, Files& files) {
  if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
}

// The job's own and those of the jobs below it, as they come.
void AddFiles(const JobSpec& job, Files& files) {
  AddNew(job.file_name, files);
  for (const Step& step : job.steps) AddFiles(step.job, files);
}

}  // namespace

absl::Status InFileOrder(const absl::Status& faults, const JobSpec& job) {
  if (faults.ok()) return faults;
  base::Faults once;
  once.Add(faults);
  const absl::Status each = once.status();
  Files files;
  AddFiles(job, files);
  std::vector<std::tuple<size_t, int, std::string>> lines;  // file, line, fault
  for (const absl::string_view fault : absl::StrSplit(each.message(), '\n')) {
    const FaultPlace location = FaultPlaceOf(fault, files);
    if (!location.file.empty()) AddNew(location.file, files);
    const auto file = std::find(files.begin(), files.end(), location.file) - files.begin();
    const size_t last = std::string::npos;
    lines.emplace_back(location.file.empty() ? last : static_cast<size_t>(file), location.line,
                       fault);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  return absl::Status(faults.code(),
                      absl::StrJoin(lines, "\n", [](std::string* out, const auto& line) {
                        out->append(std::get<2>(line));
                      }));
}

}  // namespace tutti::spec
