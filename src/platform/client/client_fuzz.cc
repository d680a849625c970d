// Feeds the client what a hostile service, job or ignore file can send: none of it may crash or
// hang, nor come out as something that steers a terminal or leaves the download folder.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "platform/client/archive/ignore.h"
#include "platform/client/connection/views.h"
#include "platform/client/follow/metric_line.h"
#include "platform/client/results/download.h"
#include "platform/client/text/columns.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::client;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Parse<JobView>(text).status().IgnoreError();
  Parse<JobListView>(text).status().IgnoreError();
  Parse<NodesView>(text).status().IgnoreError();
  ParseFollowLine(text).status().IgnoreError();
  if (const auto metric = ParseMetric(text); metric.has_value()) MetricLine(*metric);

  Require(!absl::StrContains(Printable(text), '\x1b'));
  Require(Columns(Shorten(text, 10)) <= 10);
  const std::string line = TerminalLine(text);
  Require(!absl::StrContains(line, "\x1b]") && !absl::StrContains(line, '\n'));

  const auto place = DestinationOf("/to", text);
  Require(!place.ok() || absl::StartsWith(place->lexically_normal().string(), "/to/"));

  const size_t half = text.size() / 2;
  if (size < 4096) PathPattern(text.substr(0, half)).Matches(text.substr(half));
  IgnoreRules(text).Decide("a/b.log", false);
  return 0;
}
