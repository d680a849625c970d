// SetVariable of package_files.h.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "spec/environment/package_files.h"
#include "spec/types/identifier.h"
#include "spec/types/process_variable.h"

namespace tutti::spec {
namespace {

// Where the image, or conda's folder, has its programs and libraries.
bool IsOfThePlace(absl::string_view name) {
  static constexpr absl::string_view kNames[] = {
      "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

void SetVariable(absl::string_view what, const std::string& name, const std::string& value,
                 int line, Environment& environment, Diagnostics& diagnostics) {
  const auto leave_out = [&](absl::string_view why) {
    diagnostics.Warning(line, absl::StrCat(what, " is not set: ", why));
  };
  if (!IsIdentifier(name)) return leave_out("a variable's name is of letters, digits and \"_\"");
  if (IsOfThePlace(name)) {
    return leave_out(
        "the job's programs and libraries lie elsewhere; if it needs this, write it in "
        "environment_variables");
  }
  if (const std::string why = WhyTooLong(name, value); !why.empty()) {
    diagnostics.Error(line, absl::StrCat(what, " ", why));
    return;
  }
  environment.variables[name] = value;
}

}  // namespace tutti::spec
