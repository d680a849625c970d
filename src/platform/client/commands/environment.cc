#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/container/make_image.h"
#include "platform/container/podman.h"
#include "spec/file/job_file.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// These commands end with the process.
const std::atomic<bool> never = false;

// An environment's file, or a folder with a Dockerfile.
absl::StatusOr<spec::Environment> ImageOf(const Context& context, const std::string& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) {
    spec::Environment built{.is_host = false};
    built.image = {"", fs::absolute(file).lexically_normal().string(), "Dockerfile", file};
    return built;
  }
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  TUTTI_ASSIGN_OR_RETURN(const spec::Environment environment,
                         spec::ReadEnvironmentFile(file, site));
  if (!environment.image.empty()) return environment;
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": this environment is no image here, but ",
                   environment.is_host ? "the machine's own Python"
                                       : "Python packages, which the first job that needs them "
                                         "installs",
                   "; give the folder of its Dockerfile to build that"));
}

// What is wrong with an image is wrong with what the user gave.
absl::Status AsUsers(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status)
             ? absl::InvalidArgumentError(status.message())
             : status;
}

}  // namespace

absl::StatusOr<ExitCode> EnvironmentBuild(Context& context, const EnvironmentOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Environment environment, ImageOf(context, options.file));
  const auto made = container::MakeImage(environment, context.home / "environments", never);
  TUTTI_RETURN_IF_ERROR(AsUsers(made.status()));
  if (!made->note.empty()) context.err << "note: " << made->note << "\n";
  if (options.image.empty()) {
    context.out << made->id << "\n";
    return ExitCode::kOk;
  }
  const base::TemporaryDirectory scratch("tutti-podman");
  TUTTI_RETURN_IF_ERROR(AsUsers(
      container::RunPodman({"tag", made->id, options.image}, scratch.path() / "tag.log", never)
          .status()));
  context.out << options.image << " is " << made->id << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> EnvironmentPush(Context& context, const EnvironmentOptions& options) {
  const base::TemporaryDirectory scratch("tutti-podman");
  std::vector<std::string> arguments = {"push", "--quiet", options.image};
  if (!options.destination.empty()) arguments.push_back(options.destination);
  TUTTI_RETURN_IF_ERROR(
      AsUsers(container::RunPodman(arguments, scratch.path() / "push.log", never).status()));
  context.out << (options.destination.empty() ? options.image : options.destination)
              << " is in its registry\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
