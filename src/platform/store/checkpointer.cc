#include "platform/store/checkpointer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::store {
namespace {

constexpr int kPagesOfRound = 1000;  // SQLite's own default: 4 MiB
constexpr int kMostPages = 16 * 1024;
constexpr int kTries = 3;  // each moves what has come during the one before it, which is less
constexpr absl::Duration kPause = absl::Milliseconds(100);  // without a write
constexpr int kMostDoublings = 6;                           // of it, while a read goes on

}  // namespace

Checkpointer::Checkpointer(std::filesystem::path path, absl::Duration busy_timeout,
                           Database* database, absl::Mutex* database_mutex)
    : path_(std::move(path)),
      busy_timeout_(busy_timeout),
      database_(database),
      database_mutex_(database_mutex) {
  thread_ = base::StartThread([this] { Work(); });
  // Without a thread commits move the pages, as SQLite has it.
  if (thread_.joinable()) database_->NoteLog([this](int pages) { Note(pages); });
}

Checkpointer::~Checkpointer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::Work() {
  while (AwaitPages()) {
    const absl::StatusOr<bool> has_moved_all = Round();
    if (!has_moved_all.ok()) {
      spdlog::warn("{}: its log stays as it is: {}", path_.string(),
                   has_moved_all.status().ToString());
    }
    holds_.reset();
    absl::MutexLock lock(&mutex_);
    is_unfinished_ = has_moved_all.ok() && !has_begun_anew_;
    held_by_reads_ = is_unfinished_ && *has_moved_all ? held_by_reads_ + 1 : 0;
    // One that has begun anew may have got a round's pages since.
    if (!has_begun_anew_) looked_ = pages_;
  }
}

bool Checkpointer::AwaitPages() {
  absl::MutexLock lock(&mutex_);
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || pages_ >= looked_ + kPagesOfRound;
  };
  const absl::Duration pause = kPause * (1 << std::min(held_by_reads_, kMostDoublings));
  int before = pages_;
  while (!mutex_.AwaitWithTimeout(absl::Condition(&any),
                                  is_unfinished_ ? pause : absl::InfiniteDuration())) {
    if (pages_ == before) break;
    before = pages_;
  }
  has_begun_anew_ = false;
  return !stopping_;
}

void Checkpointer::AwaitShortLog(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const auto is_short = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || pages_ < 2 * kPagesOfRound;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_short), patience);
}

void Checkpointer::Note(int pages) {
  absl::MutexLock lock(&mutex_);
  if (pages <= pages_) {
    has_begun_anew_ = true;
    looked_ = 0;
  }
  pages_ = pages;
}

int Checkpointer::pages() const {
  absl::MutexLock lock(&mutex_);
  return pages_;
}

absl::StatusOr<bool> Checkpointer::Round() {
  absl::MutexLock alone(&database_->checkpoint_mutex());
  for (int i = 0; i < kTries; ++i) {
    TUTTI_ASSIGN_OR_RETURN(const bool has_all, TryRound());
    if (has_all) return true;
  }
  if (pages() < kMostPages) return false;
  TUTTI_RETURN_IF_ERROR(FinishWithoutWrites());
  return true;
}

absl::StatusOr<bool> Checkpointer::TryRound() {
  TUTTI_RETURN_IF_ERROR(Hold());
  TUTTI_ASSIGN_OR_RETURN(const Moved moved, Move());
  absl::MutexLock no_writes(database_mutex_);
  const bool has_all = moved.moved == pages();
  TUTTI_RETURN_IF_ERROR(LetGo());
  if (has_all) TUTTI_RETURN_IF_ERROR(database_->BeginLog());
  return has_all;
}

absl::Status Checkpointer::FinishWithoutWrites() {
  absl::MutexLock no_writes(database_mutex_);
  TUTTI_RETURN_IF_ERROR(Move().status());
  return database_->BeginLog();
}

absl::StatusOr<Checkpointer::Moved> Checkpointer::Move() {
  Moved moved;
  try {
    if (moves_ == nullptr) {
      moves_ = std::make_unique<SqliteConnection>(path_, SQLite::OPEN_READWRITE, busy_timeout_);
    }
    TUTTI_RETURN_IF_ERROR(moves_->Guard([&] {
      SQLite::Statement row(*moves_, "PRAGMA wal_checkpoint(PASSIVE)");
      row.executeStep();
      moved = {row.getColumn(1).getInt(), row.getColumn(2).getInt()};
      return absl::OkStatus();
    }));
  } catch (const SQLite::Exception& thrown) {
    return OpenError(path_, thrown);
  }
  return moved;
}

absl::Status Checkpointer::Hold() {
  try {
    if (holds_ == nullptr) {
      holds_ = std::make_unique<SqliteConnection>(path_, SQLite::OPEN_READONLY, busy_timeout_);
    }
  } catch (const SQLite::Exception& thrown) {
    return OpenError(path_, thrown);
  }
  return holds_->Guard([&] {
    holds_->exec("BEGIN");
    holds_->execAndGet("SELECT count(*) FROM sqlite_schema");
    return absl::OkStatus();
  });
}

absl::Status Checkpointer::LetGo() {
  return holds_->Guard([&] {
    holds_->exec("COMMIT");
    return absl::OkStatus();
  });
}

}  // namespace tutti::store
