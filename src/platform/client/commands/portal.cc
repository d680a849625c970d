#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/http/url.h"

namespace tutti::client {
namespace {

// Returns whether a program was started that opens the link in the user's browser. Where there is
// no screen nothing is tried.
bool OpenInBrowser(const std::string& link) {
  base::ChildOptions open{.arguments = {"xdg-open", link}, .new_session = true};
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
                           "DBUS_SESSION_BUS_ADDRESS", "BROWSER", "HOME", "PATH"}) {
    if (const char* const value = std::getenv(name)) open.environment[name] = value;
  }
  const bool has_screen =
      open.environment.contains("DISPLAY") || open.environment.contains("WAYLAND_DISPLAY");
  return has_screen && base::ChildProcess::Start(open).ok();
}

}  // namespace

absl::StatusOr<ExitCode> Portal(Context& context, const PortalOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string answer, service.MakePortalLink());
  const auto link = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!link.is_object() || !link.value("url", nlohmann::json()).is_string()) {
    return absl::DataLossError("the service's answer has no link: it is of another version");
  }
  const std::string url = link["url"].get<std::string>();
  if (!link.value("there", true)) {
    context.err << "tutti: the service has no page yet: tools/build-portal makes its files\n";
  }
  context.out << url << std::endl;
  if (options.only_print) return ExitCode::kOk;
  if (OpenInBrowser(url)) {
    context.err << "Opened in the browser.\n";
  } else if (std::getenv("SSH_CONNECTION") != nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const http::Authority from,
                           http::ParseBaseUrl(url.substr(0, url.find("/portal"))));
    context.err << "From your own machine: ssh -L " << from.port << ":127.0.0.1:" << from.port
                << " THIS-MACHINE, then open the link there.\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
