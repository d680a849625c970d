#include "platform/client/storage/storage_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

namespace tutti::client {
namespace {

// Names of files need not be UTF-8.
std::string DumpReport(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool IsLink(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
}

// FilesBehindLinks tells which files of a folder lie behind a link to a folder. Files of one folder
// should be asked for one after another: the answer is kept.
class FilesBehindLinks {
 public:
  FilesBehindLinks(const StorageAddress& at, std::string base)
      : is_local_(at.is_local()), base_(std::move(base)) {}

  bool Have(const std::string& path) {
    const size_t end = path.rfind('/');
    if (!is_local_ || end == std::string::npos) return false;
    if (path.compare(0, end, folder_) != 0) {
      folder_ = path.substr(0, end);
      is_behind_ = false;
      for (size_t slash = path.find('/'); slash <= end && !is_behind_;
           slash = path.find('/', slash + 1)) {
        is_behind_ = IsLink(JoinedPath(base_, path.substr(0, slash)));
      }
    }
    return is_behind_;
  }

 private:
  const bool is_local_;
  const std::string base_;
  std::string folder_;  // that was asked for last
  bool is_behind_ = false;
};

}  // namespace

void CopyReport::Add(const StorageAddress& from, const CopyPlan& plan,
                     const std::vector<CopyItem>& copied, const StorageAddress& to) {
  sources.push_back(from.text);
  for (const CopyItem& item : copied) {
    files.push_back({AddressAt(from, JoinedPath(plan.from_base, item.from)),
                     AddressAt(to, JoinedPath(plan.to_base, item.to)), item.bytes});
  }
  left_out += static_cast<int64_t>(plan.items.size() - copied.size());
  for (const LeftOut& one : plan.left_out) {
    not_copied.push_back({AddressAt(from, JoinedPath(plan.from_base, one.from)), one.why});
  }
}

void CopyReport::AddRemoved(const StorageAddress& at, const std::string& base,
                            const std::vector<std::string>& paths) {
  FilesBehindLinks behind(at, base);
  for (const std::string& path : paths) {
    if (!behind.Have(path)) removed.push_back(AddressAt(at, JoinedPath(base, path)));
  }
}

std::string CopyReport::Json() const {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  int64_t bytes = 0;
  for (const File& file : files) {
    entries.push_back({{"from", file.from}, {"to", file.to}, {"bytes", file.bytes}});
    bytes += file.bytes;
  }
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const NotCopied& one : not_copied) others.push_back({{"from", one.from}, {"why", one.why}});
  return DumpReport({{"command", command},
                     {"dry_run", dry_run},
                     {"sources", sources},
                     {"target", target},
                     {"files", std::move(entries)},
                     {"bytes", bytes},
                     {"copied", files.size()},
                     {"left_out", left_out},
                     {"not_copied", std::move(others)},
                     {"removed", removed}});
}

void RemovalReport::Add(const StorageAddress& from, const Listing& listing) {
  sources.push_back(from.text);
  // Of a link to a folder the link goes.
  if (from.is_local() && !listing.is_file && IsLink(from.path)) return;
  FilesBehindLinks behind(from, listing.base);
  for (const storage::StoredObject& object : listing.objects) {
    if (behind.Have(object.path)) continue;
    removed.push_back(AddressAt(from, JoinedPath(listing.base, object.path)));
    bytes += object.bytes;
  }
}

std::string RemovalReport::Json() const {
  return DumpReport({{"command", "rm"},
                     {"dry_run", dry_run},
                     {"sources", sources},
                     {"removed", removed},
                     {"objects", removed.size()},
                     {"bytes", bytes}});
}

}  // namespace tutti::client
