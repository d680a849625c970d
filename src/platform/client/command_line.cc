#include "platform/client/command_line.h"

#include <unistd.h>

#include <iostream>

#include "platform/client/command_parser.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/find_service.h"

namespace tutti::client {
namespace {

std::filesystem::path ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

int Fail(const absl::Status& status) {
  std::cout.flush();
  const bool colour = Screen::Of(STDERR_FILENO).colour;
  std::cerr << Styled("tutti:", Tint::kRed, colour) << " " << status.message() << std::endl;
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv, const Wiring& wiring) {
  CommandParser parser(wiring);
  auto command = parser.Parse({argv + 1, argv + argc});
  if (!command.ok()) return Fail(command.status());
  if (!command->text.empty()) {
    std::cout << command->text << std::flush;
    return static_cast<int>(ExitCode::kOk);
  }
  const std::filesystem::path home = HomeFolder(command->home);
  Context context{ConnectTo(home),
                  home,
                  ProgramFolder(),
                  wiring.version,
                  std::cout,
                  std::cerr,
                  Screen::Of(STDOUT_FILENO),
                  Screen::Of(STDERR_FILENO),
                  wiring.build_environment};
  const absl::StatusOr<ExitCode> code = command->run(context);
  if (!code.ok()) return Fail(code.status());
  std::cout.flush();
  if (!std::cout) return Fail(absl::ResourceExhaustedError("standard output cannot be written"));
  return static_cast<int>(*code);
}

}  // namespace tutti::client
