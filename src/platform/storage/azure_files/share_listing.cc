#include "platform/storage/azure_files/share_listing.h"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "http/url.h"
#include "platform/storage/objects/guarded.h"

namespace tutti::storage {
namespace {

namespace pt = boost::property_tree;

// A name with characters that no XML can have is percent-encoded, and says so.
absl::StatusOr<std::string> NameOf(const pt::ptree& entry) {
  const pt::ptree& name = entry.get_child("Name");
  if (name.get("<xmlattr>.Encoded", "") != "true") return name.data();
  return http::PercentDecode(name.data());
}

absl::StatusOr<SharePage> Read(const std::string& xml) {
  std::istringstream text(xml);
  pt::ptree tree;
  pt::read_xml(text, tree);
  SharePage page;
  const pt::ptree& result = tree.get_child("EnumerationResults");
  page.next = result.get("NextMarker", "");
  for (const auto& [kind, entry] : result.get_child("Entries")) {
    if (kind != "File" && kind != "Directory") continue;
    absl::StatusOr<std::string> name = NameOf(entry);
    if (!name.ok()) return name.status();
    if (kind == "Directory") {
      page.folders.push_back(*std::move(name));
      continue;
    }
    StoredObject file{*std::move(name)};
    if (!absl::SimpleAtoi(entry.get("Properties.Content-Length", ""), &file.bytes) ||
        file.bytes < 0) {
      return absl::UnavailableError("the store lists a file without a size");
    }
    file.modified = StoreTimeFrom(entry.get("Properties.Last-Modified", ""));
    page.files.push_back(std::move(file));
  }
  return page;
}

}  // namespace

absl::StatusOr<SharePage> SharePageFrom(const std::string& xml) {
  return Guarded([&] { return Read(xml); },
                 [](const char*) {
                   return absl::UnavailableError(
                       "the store has not answered with a list, as Azure Files does");
                 });
}

double StoreTimeFrom(absl::string_view text) {
  for (const char* format : {"%a, %d %b %Y %H:%M:%S GMT", absl::RFC3339_full}) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(format, text, &time, &error)) continue;
    const double seconds = static_cast<double>(absl::ToUnixMicros(time)) / 1e6;
    return seconds > 0 && seconds <= kLatestTime ? seconds : 0;
  }
  return 0;
}

}  // namespace tutti::storage
