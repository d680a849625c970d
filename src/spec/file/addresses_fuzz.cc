// Any text as an address of data or code, a git address or an expression: a canonical address stays
// as it is, no address leads out of the folder that it is mapped to or of its store's container, no
// git address becomes an option of git, code in a store has no signature and is one place, and what
// a check lets pass can be expanded.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spec/command/code.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

void CheckAddress(absl::string_view text) {
  const std::string canonical = CanonicalAddress(text);
  DataMap map;
  if (!map.Add("https://e.org/a", "/copy").ok()) std::abort();
  for (const std::string& address : {std::string(text), absl::StrCat("https://e.org/a/", text)}) {
    const auto path = map.Find(address);
    if (!path.ok()) continue;
    for (const absl::string_view part : absl::StrSplit(*path, '/')) {
      if (part == "..") std::abort();
    }
    if (!absl::StartsWith(*path, "/copy") || absl::StrContains(*path, '\0')) std::abort();
  }
  if (const auto output = PathOfJobOutput(text, "/jobs"); output.ok()) {
    for (const absl::string_view part : absl::StrSplit(*output, '/')) {
      if (part == "..") std::abort();
    }
    if (!absl::StartsWith(*output, "/jobs/") || output->size() < 7) std::abort();
  }
  if (IsAddress(text)) {
    PrefixToMap(text);
    if (!map.Add(text, "/other").ok() || !map.Find(text).ok()) std::abort();
  }
}

// No place leads out of its container, also by a datastore, and none has a query.
void CheckPlace(absl::string_view text) {
  static const auto* const datastores = new Datastores{
      {"d", {.name = "d", .place = {.kind = StoreKind::kLocal, .path = "/d", .datastore = "d"}}},
      {"e",
       {.name = "e",
        .place = {.kind = StoreKind::kAzureBlob,
                  .account = "a",
                  .container = "c",
                  .endpoint = "http://h:1/a",
                  .datastore = "e"}}}};
  for (const std::string& address :
       {std::string(text), absl::StrCat("azureml://datastores/d/paths/", text),
        absl::StrCat("nfs://h/", text), absl::StrCat("http://h:1/a/c/", text),
        absl::StrCat("wasbs://c@a.blob.core.windows.net/", text)}) {
    const auto place = PlaceOf(address, *datastores);
    if (!place.ok() || !place->has_value()) continue;
    const DataPlace& found = **place;
    for (const absl::string_view part : absl::StrSplit(found.path, '/')) {
      if (part == "..") std::abort();
    }
    if (absl::StrContains(found.path, '\0')) std::abort();
    if (found.kind == StoreKind::kLocal && !absl::StartsWith(found.path, "/d")) std::abort();
    if (found.kind != StoreKind::kLocal && found.container.empty()) std::abort();
    if (found.kind == StoreKind::kNfs && found.container == "..") std::abort();
  }
}

void CheckGit(absl::string_view text) {
  if (!IsGitCode(text)) return;
  const auto code = ParseGitCode(text);
  if (!code.ok()) return;
  if (absl::StartsWith(code->revision, "-") || absl::StartsWith(code->url, "-") ||
      absl::StartsWith(code->folder, "/") || !absl::StrContains(code->url, "://")) {
    std::abort();
  }
}

void CheckStore(absl::string_view text) {
  if (!IsCodeInStore(text)) return;
  if (IsGitCode(text) || !IsRemoteCode(text) || !absl::StrContains(text, "://")) std::abort();
  const absl::Status checked = CheckCodeInStore(text);
  if (checked.ok() && (IsSigned(text) || absl::StrContains(text, '*'))) std::abort();
}

void CheckExpression(absl::string_view text) {
  const std::map<std::string, Input> inputs = {{"a", {}}, {"b", {.absent = true}}};
  const std::map<std::string, Output> outputs = {{"c", {}}};
  const bool right = CheckExpressions(text, inputs, outputs).empty();
  const auto expanded = ExpandExpressions(text, {{{"a", "1"}}, {{"c", "/c"}}, {"b"}});
  if (right && !expanded.ok()) std::abort();
}

}  // namespace
}  // namespace tutti::spec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  tutti::spec::CheckAddress(text);
  tutti::spec::CheckPlace(text);
  tutti::spec::CheckGit(text);
  tutti::spec::CheckStore(text);
  tutti::spec::CheckExpression(text);
  return 0;
}
