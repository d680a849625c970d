#include "platform/service/admission/job_name.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

constexpr size_t kLongestId = 200;  // of a child: it becomes a folder

std::string Slug(absl::string_view text) {
  std::string slug;
  for (const char c : text.substr(0, 40)) {
    if (absl::ascii_isalnum(c)) {
      slug += absl::ascii_tolower(c);
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "job" : slug;
}

// The longest name of a job below it, which follows its own: ".train.trial-10000".
size_t LongestChildName(const spec::JobSpec& job) {
  size_t longest = job.sweep ? std::strlen(".trial-10000") : 0;
  for (const spec::Step& step : job.steps) {
    longest = std::max(longest, 1 + step.name.size() + LongestChildName(step.job));
  }
  return longest;
}

// Returns whether a job file is called so that only its folder says what the job is.
bool SaysNothing(absl::string_view stem) {
  return stem.empty() || stem == "job" || stem == "pipeline" || stem == "sweep" || stem == "main" ||
         stem == "run" || stem == "submit" || stem == "azureml" || stem == "azureml-job";
}

}  // namespace

std::string SlugOf(const spec::JobSpec& job) {
  if (!job.display_name.empty()) return Slug(job.display_name);
  const std::string stem = std::filesystem::path(job.file_name).stem().string();
  return Slug(SaysNothing(stem) ? job.experiment_name : stem);
}

absl::Status CheckNameLength(const spec::JobSpec& job) {
  const size_t own = job.name.empty() ? SlugOf(job).size() + 1 + 2 * kNameBytes : job.name.size();
  if (own + LongestChildName(job) <= kLongestId) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      job.file_name, ": the names of the job and of its steps in each other have more than ",
      kLongestId, " characters"));
}

absl::Status NameIsTaken(absl::string_view name) {
  return absl::AlreadyExistsError(absl::StrCat("there is a job named \"", name,
                                               "\" already: change \"name\", or leave it out"));
}

}  // namespace tutti::service
