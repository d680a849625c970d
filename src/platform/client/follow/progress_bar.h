// Writes the progress of a training on one line:
//
//   epoch 3/24 ▕███▌      ▏ step 117/936 loss 1.42 · 3,210 images/s · 0:41 left
#pragma once

#include <string>

#include "absl/time/time.h"
#include "platform/client/follow/metric_line.h"

namespace tutti::client {

// Returns `fraction` of `width` columns filled, in eighths of a column. Out of [0, 1] it is
// clamped.
std::string Bar(double fraction, int width);

// Returns the line for the last step metric, `since` ago, in at most `width` columns: the time left
// goes on counting down; in a narrow terminal the bar shrinks first, then the end is cut.
std::string ProgressLine(const Metric& step, absl::Duration since, int width);

// Returns the same without a bar, for a log.
std::string PlainProgressLine(const Metric& step);

}  // namespace tutti::client
