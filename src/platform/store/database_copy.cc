#include "platform/store/database_copy.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/store/sqlite_connection.h"

namespace tutti::store {
namespace {

constexpr int kPatienceMs = 5000;  // with who holds the file for a moment

// `written`: the file that was written to, `path` or a copy of it.
absl::Status StatusOf(const SQLite::Exception& error, const std::filesystem::path& path,
                      const std::filesystem::path& written, int system_error) {
  const std::string what = absl::StrCat(path.string(), ": ", error.what());
  switch (error.getErrorCode() & 0xff) {  // a copy's errors have the extended code there
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(written.string(), ": ", error.what(), ": the disk is full"));
    case SQLITE_CANTOPEN:
      TUTTI_RETURN_IF_ERROR(CheckRoomBeside(written));
      return OpenError(path, error);
    case SQLITE_IOERR:
      if (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG) {
        return base::ErrnoStatus(written.string(), system_error);
      }
      return absl::UnavailableError(absl::StrCat(what, ": see the system's log"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(what,
                       ": a program keeps others out, as a service does whose disk was full "
                       "when it started: start it anew once there is space"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(path.string(), ": is damaged (", error.what(), ")"));
    default:
      return absl::InternalError(what);
  }
}

void CopyAll(SQLite::Database& source, SQLite::Database& copy) {
  SQLite::Backup backup(copy, source);
  const int result = backup.executeStep();  // all in one read transaction: no writer is kept out
  if (result != SQLITE_DONE) throw SQLite::Exception(sqlite3_errstr(result), result);
}

}  // namespace

absl::Status CopyDatabase(const std::filesystem::path& from, const std::filesystem::path& to) {
  TUTTI_RETURN_IF_ERROR(base::Open(from, O_RDONLY).status());
  TUTTI_RETURN_IF_ERROR(base::Open(to, O_WRONLY | O_CREAT | O_EXCL, 0600).status());
  int system_error = 0;
  try {
    SQLite::Database source(from.string(), SQLite::OPEN_READONLY, kPatienceMs);
    SQLite::Database copy(to.string(), SQLite::OPEN_READWRITE, kPatienceMs);
    try {
      CopyAll(source, copy);
    } catch (const SQLite::Exception&) {
      system_error = sqlite3_system_errno(copy.getHandle());
      throw;
    }
  } catch (const SQLite::Exception& error) {
    return StatusOf(error, from, to, system_error);
  }
  return absl::OkStatus();
}

absl::Status SkipNumbersGivenSince(const std::filesystem::path& copy) {
  try {
    SQLite::Database database(copy.string(), SQLite::OPEN_READWRITE, kPatienceMs);
    database.exec("UPDATE sqlite_sequence SET seq = seq + 1000000");
  } catch (const SQLite::Exception& error) {
    return StatusOf(error, copy, copy, 0);
  }
  return absl::OkStatus();
}

}  // namespace tutti::store
