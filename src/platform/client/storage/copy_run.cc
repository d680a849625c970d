#include "platform/client/storage/copy_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/client/storage/contained_target.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_fault.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr size_t kJournalNameBytes = 16;
constexpr uint64_t kLargestJournal = uint64_t{1} << 30;
constexpr int kMostFetches = 40;  // of one batch, of which objects cannot be had
constexpr char kNotGiven[] =
    "the store lists it, but does not give it: its key ends with /, or it was removed or has "
    "changed meanwhile";

}  // namespace

std::string JournalLine(const CopyItem& item) {
  return nlohmann::json({{"path", item.to},
                         {"bytes", item.bytes},
                         {"modified", std::llround(item.modified * 1e3)}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The lock is a file of its own, which stays: one that is removed and made anew would be held by
// two.
absl::StatusOr<CopyJournal> CopyJournal::Open(const fs::path& home, absl::string_view from,
                                              absl::string_view to,
                                              const std::atomic<bool>& cancelled) {
  const fs::path folder = home / "copies";
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  const std::string name = base::Hex(base::Sha256Of(absl::StrCat(from, std::string(1, '\0'), to)))
                               .substr(0, kJournalNameBytes);
  const fs::path lock_file = folder / absl::StrCat(name, ".lock");
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::LockFile(lock_file, cancelled));
  CopyJournal journal(folder / absl::StrCat(name, ".jsonl"), std::move(lock));
  const auto text = base::ReadFile(journal.file_, kLargestJournal);
  if (absl::IsNotFound(text.status())) return journal;
  TUTTI_RETURN_IF_ERROR(text.status());
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    journal.done_.emplace(line);
  }
  return journal;
}

bool CopyJournal::Has(const CopyItem& item) const { return done_.contains(JournalLine(item)); }

absl::Status CopyJournal::Add(const std::vector<CopyItem>& items) {
  std::string lines;
  for (const CopyItem& item : items) {
    const std::string line = JournalLine(item);
    absl::StrAppend(&lines, "\n", line, "\n");  // the one before may have been cut off
    done_.insert(line);
  }
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file,
                         base::Open(file_, O_WRONLY | O_CREAT | O_APPEND, 0600));
  return base::AppendWhole(file.get(), lines, file_.string());
}

absl::Status CopyJournal::Finish() {
  if (::unlink(file_.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return base::ErrnoStatus(file_.string());
}

fs::path CopyJournal::StageIn(const fs::path& parent) const {
  return parent / absl::StrCat(".tutti-copy-", file_.stem().string());
}

namespace {

std::vector<std::string> Sources(const std::vector<CopyItem>& items) {
  std::vector<std::string> paths;
  for (const CopyItem& item : items) paths.push_back(item.from);
  return paths;
}

std::vector<std::string> Targets(const std::vector<CopyItem>& items) {
  std::vector<std::string> paths;
  for (const CopyItem& item : items) paths.push_back(item.to);
  return paths;
}

// Sets the file's time, so that a later sync sees that it is the same.
void SetTime(const fs::path& file, double modified) {
  if (modified <= 0) return;
  const double seconds = std::floor(modified);
  const timespec time{static_cast<time_t>(seconds), static_cast<long>((modified - seconds) * 1e9)};
  const timespec times[2] = {time, time};
  static_cast<void>(::utimensat(AT_FDCWD, file.c_str(), times, 0));
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to.parent_path()));
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("rename to ", to.string()));
}

class CopyRun {
 public:
  CopyRun(StorageSide& from, StorageSide& to, const CopyPlan& plan, CopyJournal& journal,
          const CopyOptions& options)
      : from_(from), to_(to), plan_(plan), journal_(journal), options_(options) {}

  // Copies one batch. Takes those out of `items` that the source does not give.
  absl::Status Copy(std::vector<CopyItem>& items, const BytesListener& listener) {
    if (options_.is_contained) return BringDown(items, listener);
    if (from_.address().is_local()) return PutUp(items, listener);
    return to_.address().is_local() ? BringDown(items, listener) : Relay(items, listener);
  }

  // Removes what batches that were cut off have left.
  absl::Status Tidy() const {
    if (to_.address().is_local()) TUTTI_RETURN_IF_ERROR(base::RemoveTree(LocalStage()));
    return base::RemoveTree(RelayStage());
  }

  std::vector<LeftOut> TakeLeftOut() { return std::move(left_out_); }

 private:
  fs::path LocalStage() const { return journal_.StageIn(plan_.to_base); }
  fs::path RelayStage() const { return journal_.StageIn(options_.home / "copies"); }

  // A put takes files by the names that the objects get. Those with another one go by links.
  absl::Status PutUp(const std::vector<CopyItem>& items, const BytesListener& listener) {
    bool same = true;
    for (const CopyItem& item : items) same = same && item.from == item.to;
    if (same) return to_.Put(plan_.to_base, Targets(items), plan_.from_base, listener);
    const base::TemporaryDirectory links("tutti-copy");
    for (const CopyItem& item : items) {
      const fs::path link = links.path() / item.to;
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(link.parent_path()));
      std::error_code error;
      fs::create_symlink(fs::path(plan_.from_base) / item.from, link, error);
      if (error) return base::ErrnoStatus(link.string(), error.value());
    }
    return to_.Put(plan_.to_base, Targets(items), links.path(), listener);
  }

  // What a fetch that failed has brought is there for the next one.
  absl::Status Fetch(std::vector<CopyItem>& items, const fs::path& folder,
                     const BytesListener& listener) {
    std::set<std::string> failed;
    absl::Status fetched;
    for (int i = 0; i < kMostFetches && !items.empty(); ++i) {
      fetched = from_.Fetch(plan_.from_base, Sources(items), folder, listener);
      const std::string object = storage::ObjectOf(fetched);
      if (!absl::IsAborted(fetched) || object.empty() || plan_.items.size() == 1) return fetched;
      if (failed.insert(object).second) continue;  // it may have changed just then
      LeaveOut(object, items);
    }
    return items.empty() ? absl::OkStatus() : fetched;
  }

  void LeaveOut(const std::string& object, std::vector<CopyItem>& items) {
    std::erase_if(items, [&](const CopyItem& item) {
      if (item.from != object) return false;
      left_out_.push_back({item.from, item.to, kNotGiven});
      return true;
    });
  }

  // Copies a batch to this machine. What an earlier attempt has left in the stage is used.
  absl::Status BringDown(std::vector<CopyItem>& items, const BytesListener& listener) {
    fs::path stage = LocalStage();
    std::optional<ContainedTarget> contained;
    if (options_.is_contained) {
      TUTTI_ASSIGN_OR_RETURN(contained, ContainedTarget::Open(plan_.to_base, stage.filename()));
      stage = contained->stage();
    } else {
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(stage));
    }
    TUTTI_RETURN_IF_ERROR(Fetch(items, stage, listener));
    // It would say of files that are gone from here that they are there.
    ::unlink((stage / storage::kManifestName).c_str());
    for (const CopyItem& item : items) {
      SetTime(stage / item.from, item.modified);
      TUTTI_RETURN_IF_ERROR(contained
                                ? contained->Take(item.from, item.to)
                                : Rename(stage / item.from, fs::path(plan_.to_base) / item.to));
    }
    return base::RemoveTree(LocalStage());
  }

  absl::Status Relay(std::vector<CopyItem>& items, const BytesListener& listener) {
    const fs::path stage = RelayStage(), fetched = stage / "fetched", named = stage / "named";
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(fetched));
    // The first half of the bytes is their way here.
    const auto half = [&](int64_t before) {
      return [&listener, before](int64_t bytes) {
        if (listener) listener(before + bytes / 2);
      };
    };
    TUTTI_RETURN_IF_ERROR(Fetch(items, fetched, half(0)));
    ::unlink((fetched / storage::kManifestName).c_str());
    int64_t bytes = 0;
    for (const CopyItem& item : items) {
      bytes += item.bytes;
      TUTTI_RETURN_IF_ERROR(Rename(fetched / item.from, named / item.to));
    }
    TUTTI_RETURN_IF_ERROR(to_.Put(plan_.to_base, Targets(items), named, half(bytes / 2)));
    return base::RemoveTree(stage);
  }

  StorageSide& from_;
  StorageSide& to_;
  const CopyPlan& plan_;
  CopyJournal& journal_;
  const CopyOptions& options_;
  std::vector<LeftOut> left_out_;
};

// Leaves out what is noted and still there.
absl::StatusOr<int64_t> LeaveOutNoted(StorageSide& to, const CopyJournal& journal, CopyPlan& plan) {
  if (journal.is_empty()) return 0;
  const auto listing = to.List(/*recursive=*/true);
  if (!listing.ok()) {
    if (absl::IsNotFound(listing.status())) return 0;
    return listing.status();
  }
  if (listing->is_file || listing->base != plan.to_base) return 0;
  const ObjectsByPath there = ByPath(listing->objects);
  return static_cast<int64_t>(std::erase_if(plan.items, [&](const CopyItem& item) {
    const auto found = there.find(item.to);
    // A job's files have no time, and another job may have got its name meanwhile.
    return item.modified > 0 && found != there.end() && found->second.bytes == item.bytes &&
           journal.Has(item);
  }));
}

}  // namespace

absl::StatusOr<Copied> RunCopy(StorageSide& from, StorageSide& to, CopyPlan plan,
                               CopyJournal& journal, const CopyOptions& options) {
  Copied copied;
  TUTTI_ASSIGN_OR_RETURN(const int64_t noted, LeaveOutNoted(to, journal, plan));
  if (noted > 0 && options.goes_on) options.goes_on(noted);
  CopyProgress progress{.of_files = static_cast<int64_t>(plan.items.size())};
  for (const CopyItem& item : plan.items) progress.of_bytes += item.bytes;
  CopyRun run(from, to, plan, journal, options);
  for (size_t begin = 0; begin < plan.items.size();) {
    const size_t end = EndOfBatch(plan.items, begin, options.limits);
    std::vector<CopyItem> batch(plan.items.begin() + static_cast<ptrdiff_t>(begin),
                                plan.items.begin() + static_cast<ptrdiff_t>(end));
    const CopyProgress before = progress;
    TUTTI_RETURN_IF_ERROR(run.Copy(batch, [&](int64_t bytes) {
      progress.bytes = before.bytes + bytes;
      if (options.progress) options.progress(progress);
    }));
    TUTTI_RETURN_IF_ERROR(journal.Add(batch));
    progress.bytes = before.bytes;
    for (const CopyItem& item : batch) progress.bytes += item.bytes;
    progress.files += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(progress);
    copied.items.insert(copied.items.end(), batch.begin(), batch.end());
    begin = end;
  }
  TUTTI_RETURN_IF_ERROR(run.Tidy());
  TUTTI_RETURN_IF_ERROR(journal.Finish());
  copied.left_out = run.TakeLeftOut();
  return copied;
}

}  // namespace tutti::client
