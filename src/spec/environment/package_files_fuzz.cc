// Any bytes as a conda file, pip's requirements, pyproject.toml and a Dockerfile, each of which may
// name the others: errors, or requirements of one line each that remember where they stand.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "spec/environment/package_files.h"

namespace tutti::spec {
namespace {

void Check(const Environment& environment) {
  for (const Requirement& package : environment.packages) {
    if (absl::StrContains(package.text, '\n') || package.text.size() > 300'000) std::abort();
  }
}

void ReadAll(absl::string_view text) {
  const ReadFileFunction read_file = [&](const std::filesystem::path&) {
    return std::string(text);
  };
  int files_left = 32;
  const ReadContext context{"/base", BuiltInSite(), read_file, files_left};
  const NamedFile file{"file", "/base/file"};
  Environment environment;
  Diagnostics diagnostics("file");
  ReadRequirements(text, file, context, environment, diagnostics);
  Check(environment);
  environment = {};
  files_left = 32;
  ReadDockerfile(text, file, context, environment, diagnostics);
  Check(environment);
  environment = {};
  ReadPyproject(text, file, context, environment, diagnostics);
  Check(environment);
  environment = {};
  files_left = 32;
  if (const auto root = ParseYaml(text, "file"); root.ok()) {
    ReadCondaMapping(**root, file, context, environment, diagnostics);
  }
  Check(environment);
  if (!diagnostics.status().ok() && diagnostics.status().message().empty()) std::abort();
}

}  // namespace
}  // namespace tutti::spec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::spec::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
