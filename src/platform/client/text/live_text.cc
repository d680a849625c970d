#include "platform/client/text/live_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kBetweenProgress = absl::Minutes(1);  // on a pipe

}  // namespace

LiveText::~LiveText() {
  SetStatus("");
  Flush();
}

void LiveText::Print(absl::string_view line) { absl::StrAppend(&lines_, line, "\n"); }

void LiveText::SetStatus(absl::string_view status) {
  if (screen_.is_terminal) status_ = std::string(status);
}

void LiveText::SetProgress(absl::string_view line, absl::Time now) {
  if (screen_.is_terminal) return SetStatus(Shorten(line, screen_.width - 1));
  if (told_ == absl::InfiniteFuture()) told_ = now;
  if (now - told_ < kBetweenProgress) return;
  told_ = now;
  Print(line);
}

void LiveText::Flush() {
  if (lines_.empty() && status_ == drawn_) return;
  std::string bytes;
  const auto above = std::count(drawn_.begin(), drawn_.end(), '\n');
  if (above > 0) bytes = absl::StrCat("\x1b[", above, "A");
  // These move to the line's start, and erase to the line's or the screen's end.
  if (!drawn_.empty()) bytes += above > 0 ? "\r\x1b[J" : "\r\x1b[K";
  absl::StrAppend(&bytes, lines_, status_);
  out_ << bytes << std::flush;
  lines_.clear();
  drawn_ = status_;
}

}  // namespace tutti::client
