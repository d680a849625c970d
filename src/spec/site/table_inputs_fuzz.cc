// Any text as a file MLTable, of a table of this machine and of one in a store: what it names stays
// in its container, has a name in the folder that the job gets which does not lead out of it, and
// no two files of one store have the same.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spec/data/table_file.h"
#include "spec/site/table_inputs.h"

namespace tutti::spec {
namespace {

void CheckInside(absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == "..") std::abort();
  }
  if (absl::StrContains(path, '\0')) std::abort();
}

std::string WhereIs(const Input& input) {
  if (!input.place) return input.path;
  return absl::StrCat(StoreOf(*input.place), "\n", input.place->path);
}

void Check(absl::string_view text, const Input& table) {
  const auto paths = ReadTable(text, "MLTable");
  if (!paths.ok()) return;
  if (paths->empty() || paths->size() > kMostTablePaths) std::abort();
  static const auto* const site = new Site(BuiltInSite());
  const auto inputs = TableInputs(*paths, table, *site, "MLTable");
  if (!inputs.ok()) return;
  if (inputs->size() != paths->size()) std::abort();
  std::set<std::pair<std::string, std::string>> files;
  std::set<std::string> names;
  for (const Input& input : *inputs) {
    CheckInside(input.placed);
    if (absl::StartsWith(input.placed, "/")) std::abort();
    if (input.place) CheckInside(input.place->path);
    if (input.type != "uri_file") continue;
    const bool is_new = files.emplace(WhereIs(input), input.placed).second;
    if (is_new && !names.insert(input.placed).second) std::abort();
  }
}

}  // namespace
}  // namespace tutti::spec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tutti::spec::Input;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Input local{.type = "mltable", .path = "/data/t"};
  tutti::spec::Check(text, local);
  Input stored{.type = "mltable"};
  stored.place = {.kind = tutti::spec::StoreKind::kS3, .container = "c", .path = "sets/t"};
  tutti::spec::Check(text, stored);
  return 0;
}
