// Makes the lines of a terminal that `tutti top` shows. Pure: a view, what of it is seen, and
// the terminal's size decide all.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/client/text/style.h"
#include "platform/client/top/live_view.h"
#include "platform/client/top/look.h"

namespace tutti::client {

// Contact is the state of the connection to the service.
struct Contact {
  absl::Status error;  // of the last try; OK: it answered, or has been asked since
  absl::Time now;
  // A view that is older is said to be old, though there was no error.
  absl::Duration patience = absl::Seconds(10);
  absl::TimeZone time_zone = absl::LocalTimeZone();
};

// FrameSize is how large a frame is, and whether the user can choose in it.
struct FrameSize {
  int width = 0;   // columns; 0: unlimited
  int height = 0;  // lines; 0: unlimited, and nobody chooses: no cursor, no keys
  bool colour = false;
};

// Returns the frame, of `size.height` lines at most, none of them wider than `size.width` from 20
// on. Where that is too narrow, columns are left out in an order (docs/monitoring/top.md), then
// names are cut; where it is too low, the keys, the sums and the nodes are left out, then rows. No
// control character of a name gets into it. `view` is of what `look` has open, or empty.
std::vector<std::string> FrameLines(const LiveView& view, const Look& look, const Contact& contact,
                                    const FrameSize& size);

}  // namespace tutti::client
