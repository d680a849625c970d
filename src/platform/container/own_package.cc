#include "platform/container/own_package.h"

#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/site/requirement.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> FindWheel(const fs::path& program) {
  std::error_code error;
  const fs::path folder = fs::canonical(program, error).parent_path().parent_path() / "share/tutti";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (absl::StartsWith(name, "horovod-") && absl::EndsWith(name, ".whl")) return entry->path();
  }
  return absl::NotFoundError(absl::StrCat(
      "horovod is tutti's own Python package, which is not in ", folder.string(),
      ": build it (tools/build tutti_wheel in the checkout), or take horovod out of the "
      "environment's file"));
}

}  // namespace

absl::StatusOr<spec::Environment> WithOwnPackage(spec::Environment environment,
                                                 const fs::path& program) {
  for (spec::Requirement& package : environment.packages) {
    if (package.text != spec::kHorovod) continue;
    const auto wheel = FindWheel(program);
    TUTTI_RETURN_IF_ERROR(base::Annotate(wheel.status(), package.location));
    package.text = *wheel;
  }
  return environment;
}

}  // namespace tutti::container
