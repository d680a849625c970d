#include "platform/client/text/how_to_get.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace tutti::client {
namespace {

// A module of the wheels', which starts programs; bin/ is beside it (docs/install/wheels.md).
constexpr char kStarter[] = "_programs.py";

}  // namespace

std::string HowToGet(const std::filesystem::path& program_folder, const std::string& name) {
  std::error_code error;
  if (std::filesystem::exists(program_folder.parent_path() / kStarter, error)) {
    return "install the wheel tutti-train, and the torch that it requires, into this environment";
  }
  return absl::StrCat("tools/setup build && tools/build ", name);
}

}  // namespace tutti::client
