#include "platform/store/sqlite_connection.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::store {
namespace {

bool IsOutOfSpace(const SQLite::Exception& error, int system_error) {
  if (error.getErrorCode() == SQLITE_FULL) return true;
  if (error.getErrorCode() != SQLITE_IOERR) return false;
  return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG ||
         error.getExtendedErrorCode() == SQLITE_IOERR_SHMSIZE;
}

}  // namespace

absl::Status CheckRoomBeside(const std::filesystem::path& path) {
  const std::filesystem::path file = absl::StrCat(path.string(), "-", base::RandomHex(4));
  const absl::Status made = base::ReplaceFile(file, "x", 0600);
  ::unlink(file.c_str());
  return absl::IsResourceExhausted(made) ? made : absl::OkStatus();
}

absl::Status OpenError(const std::filesystem::path& path, const SQLite::Exception& error) {
  if ((error.getErrorCode() & 0xff) == SQLITE_CANTOPEN) {
    TUTTI_RETURN_IF_ERROR(CheckRoomBeside(path));
    // Never by opening it: closing it again would drop the locks that this process has on it.
    if (::access(path.c_str(), R_OK | W_OK) == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          path.string(), ": cannot be opened (", error.what(),
          "), though it is there and a file can be made beside it: see whether its disk is full at "
          "times, or the files beside it are another user's, and try again"));
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(path.string(), ": cannot be opened (",
                                                    error.what(),
                                                    "); check that its folder exists and that you "
                                                    "may write there"));
}

absl::Status StatusOfUnforeseen() {
  try {
    throw;
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the store: ", error.what()));
  } catch (...) {
    return absl::InternalError("the store: an exception that says nothing");
  }
}

SqliteConnection::SqliteConnection(const std::filesystem::path& path, int flags,
                                   absl::Duration busy_timeout)
    : SQLite::Database(path.string(), flags,
                       static_cast<int>(absl::ToInt64Milliseconds(busy_timeout))),
      path_(path),
      busy_timeout_(busy_timeout) {}

SQLite::Statement& SqliteConnection::Prepared(const char* sql) {
  const auto found = prepared_.find(sql);
  if (found != prepared_.end()) return found->second;
  return prepared_.emplace(sql, SQLite::Statement(*this, sql)).first->second;
}

absl::Status SqliteConnection::Guard(absl::FunctionRef<absl::Status()> body) {
  try {
    return body();
  } catch (const SQLite::Exception& error) {
    return StatusOf(error);
  } catch (...) {
    return StatusOfUnforeseen();
  }
}

absl::Status SqliteConnection::StatusOf(const SQLite::Exception& error) {
  const std::string place = absl::StrCat(path_.string(), ": ");
  if (IsOutOfSpace(error, sqlite3_system_errno(getHandle()))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        place, "the disk is full and nothing was changed; free some space on the file system of ",
        path_.parent_path().string(), " and try again"));
  }
  switch (error.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(place, "is damaged (", error.what(),
                                              "); restore it from a backup or move it away"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(place, "another program holds it for longer than ",
                                                 absl::FormatDuration(busy_timeout_),
                                                 "; stop it and try again"));
    case SQLITE_IOERR:
      return absl::UnavailableError(
          absl::StrCat(place, "the device fails (", error.what(), "); see the system's log"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return OpenError(path_, error);
    default:
      return absl::InternalError(absl::StrCat(place, error.what()));
  }
}

}  // namespace tutti::store
