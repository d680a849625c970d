#include "platform/client/text/live_text.h"

#include "absl/strings/str_cat.h"

namespace tutti::client {

LiveText::~LiveText() {
  SetStatus("");
  Flush();
}

void LiveText::Print(absl::string_view line) { absl::StrAppend(&lines_, line, "\n"); }

void LiveText::SetStatus(absl::string_view status) {
  if (screen_.is_terminal) status_ = std::string(status);
}

void LiveText::Flush() {
  if (lines_.empty() && status_ == drawn_) return;
  std::string bytes;
  if (!drawn_.empty()) bytes = "\r\x1b[K";  // to the line's start, and erase to its end
  absl::StrAppend(&bytes, lines_, status_);
  out_ << bytes << std::flush;
  lines_.clear();
  drawn_ = status_;
}

}  // namespace tutti::client
