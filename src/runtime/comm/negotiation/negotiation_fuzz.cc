// Any bytes are either refused or read into a message that is written as the same bytes again; and
// whatever ranks report, the coordinator neither fails nor says what no rank could read.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/coordination/coordinator.h"

namespace {

using namespace tutti::comm;  // NOLINT(google-build-using-namespace)

void Coordinate(const uint8_t* data, size_t size) {
  CoordinatorOptions options;
  options.size = 3;
  options.cache_capacity = 2;
  Coordinator coordinator(options);
  absl::Duration now;
  while (size > 2) {
    const int from = data[0] % 3;
    const size_t length = std::min<size_t>(data[1], size - 2);
    const auto report = ReadReport({reinterpret_cast<const char*>(data + 2), length});
    now += absl::Milliseconds(1);
    if (report.ok()) coordinator.OnReport(from, *report, now);
    const absl::Duration silence[] = {absl::ZeroDuration(), absl::Seconds(data[1]), now};
    coordinator.OnTick(now, silence);
    for (const auto& [to, orders] : coordinator.TakeOutgoing()) {
      if (to < 0 || to > 2 || !ReadOrders(Write(orders)).ok()) std::abort();
    }
    data += 2 + length;
    size -= 2 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto report = ReadReport(bytes);
  if (report.ok() && Write(*report) != bytes) std::abort();
  const auto orders = ReadOrders(bytes);
  if (orders.ok() && Write(*orders) != bytes) std::abort();
  Coordinate(data, size);
  return 0;
}
