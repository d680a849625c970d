#include "platform/client/top/live.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/top/frame.h"
#include "platform/client/top/live_reader.h"
#include "platform/client/top/look.h"

namespace tutti::client {
namespace {

// Whether the last answer is old, which only time changes, is checked this often.
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
// The rest of an escape sequence may take this long after its first byte.
constexpr absl::Duration kRestOfKey = absl::Milliseconds(50);

class LiveScreen {
 public:
  LiveScreen(const Connect& connect, LiveView first, const LiveOptions& options, Terminal& terminal)
      : options_(options),
        terminal_(terminal),
        reader_(connect, first.open, options.interval, [this] { terminal_.Wake(); }) {
    look_.open = first.open;
    Of(first.open) = std::move(first);
  }

  absl::StatusOr<ExitCode> Run() {
    TUTTI_RETURN_IF_ERROR(terminal_.Enter());
    // The terminal is left before the reader is waited for.
    const absl::Cleanup leave = [this] { terminal_.Leave(); };
    while (true) {
      TUTTI_RETURN_IF_ERROR(Draw());
      terminal_.Wait(bytes_.empty() ? kBetweenLooks : kRestOfKey);
      if (terminal_.was_ended()) return ExitCode::kInterrupted;
      TUTTI_RETURN_IF_ERROR(terminal_.StopIfAsked());
      if (terminal_.is_over()) return ExitCode::kOk;
      TakeNews();
      if (!TakeKeysOfUser()) return ExitCode::kOk;
    }
  }

 private:
  LiveView& Of(const std::string& open) { return open.empty() ? all_ : one_; }
  const LiveView& shown() const { return look_.open.empty() ? all_ : one_; }

  absl::Status Draw() {
    const TerminalSize size = terminal_.size();
    const Contact contact = {
        .error = error_,
        .now = absl::Now(),
        .patience = std::max(3 * options_.interval, Use::kFresh),
    };
    return terminal_.Draw(
        FrameLines(shown(), look_, contact,
                   {.width = size.width, .height = size.height, .colour = options_.colour}));
  }

  void TakeNews() {
    auto news = reader_.Take();
    if (!news.has_value()) return;
    error_ = news->status();
    if (!news->ok()) return;
    if ((*news)->open == look_.open) Of(look_.open) = **std::move(news);
  }

  // False: the user leaves.
  bool TakeKeysOfUser() {
    const std::string came = terminal_.TakeBytes();
    const absl::Time now = absl::Now();
    if (!came.empty()) came_ = now;
    bytes_ += came;
    for (const Key key : TakeKeys(bytes_, /*is_all=*/now - came_ >= kRestOfKey)) {
      if (key == Key::kQuit) return false;
      const std::string open = look_.open;
      look_ = Turn(std::move(look_), key, shown(), std::max(1, terminal_.size().height / 2));
      if (look_.open == open) continue;
      if (!look_.open.empty() && one_.open != look_.open) one_ = LiveView{.open = look_.open};
      error_ = absl::OkStatus();
      reader_.Open(look_.open);
    }
    return true;
  }

  const LiveOptions options_;
  Terminal& terminal_;
  LiveView all_, one_;
  Look look_;
  absl::Status error_;
  std::string bytes_;                       // of a key that is not whole yet
  absl::Time came_ = absl::InfinitePast();  // when the last of them did
  LiveReader reader_;
};

}  // namespace

absl::StatusOr<ExitCode> ShowLive(const Connect& connect, LiveView first,
                                  const LiveOptions& options, Terminal& terminal) {
  return LiveScreen(connect, std::move(first), options, terminal).Run();
}

}  // namespace tutti::client
