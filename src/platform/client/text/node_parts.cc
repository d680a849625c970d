#include "platform/client/text/node_parts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/client/text/amounts.h"

namespace tutti::client {

std::string Ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[first]);
    if (last > first) absl::StrAppend(&text, "-", numbers[last]);
  }
  return text;
}

std::string PartText(int cores, uint64_t memory_bytes, int gpus) {
  std::string text = absl::StrCat(cores, cores == 1 ? " core" : " cores");
  if (memory_bytes > 0) absl::StrAppend(&text, ", ", Bytes(memory_bytes));
  if (gpus > 0) absl::StrAppend(&text, ", ", gpus, gpus == 1 ? " GPU" : " GPUs");
  return text;
}

std::string PlaceText(absl::string_view node, const std::vector<int>& cores, uint64_t memory_bytes,
                      const std::vector<std::string>& gpus) {
  std::string text =
      absl::StrCat(node, " (", cores.size() == 1 ? "core " : "cores ", Ranges(cores));
  if (memory_bytes > 0) absl::StrAppend(&text, ", ", Bytes(memory_bytes));
  if (!gpus.empty()) {
    absl::StrAppend(&text, ", ", gpus.size() == 1 ? "GPU " : "GPUs ", absl::StrJoin(gpus, ","));
  }
  return text + ")";
}

}  // namespace tutti::client
