#include <unistd.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/top/frame.h"
#include "platform/client/top/live.h"
#include "platform/client/top/live_view_json.h"
#include "platform/client/top/terminal.h"

namespace tutti::client {
namespace {

absl::StatusOr<LiveView> FirstView(Context& context, const TopOptions& options) {
  ServiceClient service(context.connect());
  if (options.job.empty()) return AskForAll(service, {});
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  return AskForJob(service, id);
}

}  // namespace

absl::StatusOr<ExitCode> Top(Context& context, const TopOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(LiveView first, FirstView(context, options));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, LiveViewJson(first), options.format));
    return ExitCode::kOk;
  }
  const Screen& screen = context.out_screen;
  if (options.once || !screen.moves) {
    for (const std::string& line : FrameLines(first, {.open = first.open}, {.now = absl::Now()},
                                              {.width = screen.width, .colour = screen.colour})) {
      context.out << line << "\n";
    }
    return ExitCode::kOk;
  }
  context.out.flush();
  Terminal terminal(STDIN_FILENO, STDOUT_FILENO);
  return ShowLive(context.connect, std::move(first),
                  {.interval = options.interval, .colour = screen.colour}, terminal);
}

}  // namespace tutti::client
