#include "platform/client/storage/copy_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameBytes = 16;
constexpr uint64_t kLargestJournal = uint64_t{1} << 30;

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
  const std::string name =
      base::Hex(base::Sha256Of(absl::StrCat(from, std::string(1, '\0'), to))).substr(0, kNameBytes);
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

}  // namespace tutti::client
