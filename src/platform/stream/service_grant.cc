#include "platform/stream/service_grant.h"

#include <unistd.h>

#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/process/command.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;

constexpr char kClient[] = "tutti";
constexpr int kUnreachable = 3;  // docs/formats/exit-codes.md
constexpr size_t kMostAnswer = 64 << 10;
constexpr size_t kMostReason = 600;
constexpr char kInAJob[] =
    "; in a job name it as an input with mode: direct, which its launcher serves";

// Returns what the program printed last, without its name.
std::string ReasonOf(absl::string_view printed) {
  printed = absl::StripAsciiWhitespace(printed);
  printed = printed.substr(printed.rfind('\n') + 1);
  absl::ConsumePrefix(&printed, "tutti: ");
  return std::string(printed.substr(0, kMostReason));
}

}  // namespace

fs::path ClientProgram() {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / kClient;
  return ::access(beside.c_str(), X_OK) == 0 ? beside : fs::path(kClient);
}

absl::StatusOr<storage::Grant> AskForGrant(const std::string& address, const fs::path& program,
                                           base::Deadline deadline) {
  base::ChildOptions start;
  start.arguments = {program.string(), "storage", "grant", address};
  start.environment = base::CurrentEnvironment();
  start.directory = "/";
  const auto asked = base::RunCommand(std::move(start), "", deadline, kMostAnswer);
  if (!asked.ok()) {
    return absl::UnavailableError(absl::StrCat("\"", address, "\": ", program.string(),
                                               " storage grant: ", asked.status().message(),
                                               kInAJob));
  }
  const bool is_good = asked->exit.ok();
  if (is_good) {
    auto grant = storage::GrantFromJson(asked->out);
    if (grant.ok()) return grant;
  }
  const std::string why = absl::StrCat(
      "\"", address, "\": ", is_good ? "the service's answer is no grant" : ReasonOf(asked->err),
      kInAJob);
  return asked->exit.code == kUnreachable ? absl::UnavailableError(why)
                                          : absl::InvalidArgumentError(why);
}

}  // namespace tutti::stream
