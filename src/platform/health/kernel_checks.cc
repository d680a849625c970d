#include "platform/health/kernel_checks.h"

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/text/binary_size.h"

namespace tutti::health {
namespace {

namespace fs = std::filesystem;

// A hundredth of it, but no more than this.
constexpr uint64_t kMostReserve = uint64_t{256} << 20;

std::string OneLineOf(const fs::path& file) {
  const auto text = base::ReadFile(file, 64 << 10);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

// Returns the field in bytes; 0 if the kernel does not report it.
uint64_t FieldOfMemory(absl::string_view meminfo, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::StartsWith(line, name)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes << 10;
  }
  return 0;
}

// Returns the number of uncorrected errors that all memory controllers have counted since the
// machine booted.
uint64_t UncorrectedErrors(const fs::path& root) {
  uint64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/devices/system/edac/mc", error), end;
       !error && entry != end; entry.increment(error)) {
    uint64_t count = 0;
    if (absl::SimpleAtoi(OneLineOf(entry->path() / "ue_count"), &count)) sum += count;
  }
  return sum;
}

// "" if it is up.
std::string WhyRdmaIsDown(const std::string& link, const fs::path& device,
                          const std::string& port) {
  std::vector<std::string> states;
  std::error_code error;
  for (fs::directory_iterator entry(device / "ports", error), end; !error && entry != end;
       entry.increment(error)) {
    if (!port.empty() && entry->path().filename() != port) continue;
    states.push_back(OneLineOf(entry->path() / "state"));
    if (absl::StrContains(states.back(), "ACTIVE")) return "";
  }
  if (states.empty()) return absl::StrCat("link ", link, " is not there");
  std::sort(states.begin(), states.end());
  return absl::StrCat("link ", link, " is ", absl::StrJoin(states, ", "));
}

std::string WhyDown(const std::string& link, const fs::path& root) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(link, absl::MaxSplits(':', 1));
  std::error_code error;
  const fs::path device = root / "sys/class/infiniband" / parts.first;
  if (fs::exists(device, error)) return WhyRdmaIsDown(link, device, parts.second);
  const fs::path interface = root / "sys/class/net" / link;
  const std::string state = OneLineOf(interface / "operstate");
  if (state.empty()) return absl::StrCat("link ", link, " is not there");
  // Drivers that know of no state say "unknown": then the carrier tells.
  const bool up = state == "up" || (state == "unknown" && OneLineOf(interface / "carrier") == "1");
  return up ? "" : absl::StrCat("link ", link, " is ", state == "unknown" ? "down" : state);
}

}  // namespace

NodeCheck CheckMemory(const fs::path& root) {
  const std::string meminfo = OneLineOf(root / "proc/meminfo");
  const uint64_t total = FieldOfMemory(meminfo, "MemTotal:");
  const uint64_t available = FieldOfMemory(meminfo, "MemAvailable:");
  if (total == 0) return {"memory", NodeCheck::Outcome::kUnknown, "the kernel does not say"};
  if (const uint64_t errors = UncorrectedErrors(root); errors > 0) {
    return {"memory", NodeCheck::Outcome::kIll,
            absl::StrCat(errors, " errors of memory since the boot that could not be corrected")};
  }
  const std::string left =
      absl::StrCat(base::BinarySize(available), " of ", base::BinarySize(total), " available");
  const bool is_short = available < std::min(total / 100, kMostReserve);
  return {"memory", is_short ? NodeCheck::Outcome::kIll : NodeCheck::Outcome::kWell, left};
}

NodeCheck CheckLinks(const std::vector<std::string>& links, const fs::path& root) {
  std::vector<std::string> faults;
  for (const std::string& link : links) {
    if (std::string why = WhyDown(link, root); !why.empty()) faults.push_back(std::move(why));
  }
  if (!faults.empty()) return {"link", NodeCheck::Outcome::kIll, absl::StrJoin(faults, ", ")};
  return {"link", NodeCheck::Outcome::kWell, absl::StrCat(absl::StrJoin(links, ", "), " up")};
}

}  // namespace tutti::health
