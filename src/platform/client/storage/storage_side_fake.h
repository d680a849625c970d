// FakeSide is a side of a copy for tests: files of a store in memory, with a call that can be told
// to fail. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

class FakeSide final : public StorageSide {
 public:
  // Stands for the bucket `name`, whose `files` are content by path.
  FakeSide(const std::string& name, std::string path, std::map<std::string, std::string> files)
      : files_(std::move(files)) {
    address_.text = absl::StrCat("s3://", name, "/", path);
    address_.path = std::move(path);
    address_.place = {.kind = spec::StoreKind::kS3, .container = name, .path = address_.path};
  }

  const StorageAddress& address() const override { return address_; }
  std::map<std::string, std::string>& files() { return files_; }
  // "fetch a b", "put x", "remove x", in the order of the calls.
  const std::vector<std::string>& calls() const { return calls_; }
  // An error that it returns is that of the call, before the call has done anything.
  std::function<absl::Status(const std::string& call)> hook;

  absl::StatusOr<Listing> List(bool) override {
    const auto one = files_.find(address_.path);
    if (one != files_.end()) {
      return Listing{true, FolderPart(one->first), {Object(NamePart(one->first), one->second)}};
    }
    Listing listing{false, address_.path, {}};
    for (const auto& [path, content] : files_) {
      const std::string prefix = address_.path.empty() ? "" : address_.path + "/";
      if (!absl::StartsWith(path, prefix)) continue;
      listing.objects.push_back(Object(path.substr(prefix.size()), content));
    }
    if (listing.objects.empty()) return absl::NotFoundError("nothing is there");
    return listing;
  }
  absl::Status Fetch(const std::string& base, const std::vector<std::string>& files,
                     const std::filesystem::path& folder, const BytesListener& listener) override {
    TUTTI_RETURN_IF_ERROR(Note("fetch", files));
    int64_t bytes = 0;
    for (const std::string& file : files) {
      const std::string& content = files_.at(Full(base, file));
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories((folder / file).parent_path()));
      TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder / file, content));
      listener(bytes += static_cast<int64_t>(content.size()));
    }
    return absl::OkStatus();
  }
  absl::Status Put(const std::string& base, const std::vector<std::string>& files,
                   const std::filesystem::path& folder, const BytesListener&) override {
    TUTTI_RETURN_IF_ERROR(Note("put", files));
    for (const std::string& file : files) {
      TUTTI_ASSIGN_OR_RETURN(files_[Full(base, file)], base::ReadFile(folder / file));
    }
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& base, const std::vector<std::string>& files) override {
    TUTTI_RETURN_IF_ERROR(Note("remove", files));
    for (const std::string& file : files) files_.erase(Full(base, file));
    return absl::OkStatus();
  }

  absl::Status RemoveAll() override {
    files_.clear();
    return Note("remove all", {});
  }

 private:
  static storage::StoredObject Object(const std::string& path, const std::string& content) {
    storage::StoredObject object{path, static_cast<int64_t>(content.size())};
    object.modified = 1700000000;
    return object;
  }
  static std::string Full(const std::string& base, const std::string& file) {
    return base.empty() ? file : absl::StrCat(base, "/", file);
  }
  absl::Status Note(const std::string& call, const std::vector<std::string>& files) {
    std::string text = call;
    for (const std::string& file : files) absl::StrAppend(&text, " ", file);
    calls_.push_back(text);
    return hook ? hook(text) : absl::OkStatus();
  }

  StorageAddress address_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> calls_;
};

}  // namespace tutti::client
