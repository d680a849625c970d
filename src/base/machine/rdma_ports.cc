#include "base/machine/rdma_ports.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

bool Says(const fs::path& file, absl::string_view word) {
  return absl::StrContains(ReadFile(file, 4096).value_or(""), word);
}

std::vector<fs::path> Below(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::vector<std::string> ActiveRdmaPorts(const fs::path& devices) {
  std::vector<std::string> active;
  for (const fs::path& device : Below(devices)) {
    if (Says(device / "node_type", "RNIC")) continue;
    for (const fs::path& port : Below(device / "ports")) {
      if (!Says(port / "state", "ACTIVE")) continue;
      active.push_back(
          absl::StrCat(device.filename().string(), " port ", port.filename().string()));
    }
  }
  return active;
}

}  // namespace tutti::base
