// SqliteConnection is one connection of SQLite to a database; it keeps statements prepared and
// turns exceptions into statuses that say what to do. Not thread-safe.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>

#include <filesystem>
#include <map>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::store {

// To prepare a statement takes as long as to run it.
class SqliteConnection final : public SQLite::Database {
 public:
  // Throws as SQLite::Database does: OpenError.
  SqliteConnection(const std::filesystem::path& path, int flags, absl::Duration busy_timeout);

  // Returns a statement; `sql` is a constant; one user at a time (CachedStatement).
  SQLite::Statement& Prepared(const char* sql);
  // Runs `body`. What it throws is its error: Internal, if it is not SQLite's.
  absl::Status Guard(absl::FunctionRef<absl::Status()> body);

 private:
  absl::Status StatusOf(const SQLite::Exception& error);

  const std::filesystem::path path_;
  const absl::Duration busy_timeout_;
  std::map<const char*, SQLite::Statement> prepared_;
};

// One use of a statement that a connection keeps.
class CachedStatement {
 public:
  CachedStatement(SqliteConnection& connection, const char* sql)
      : statement_(connection.Prepared(sql)) {}
  ~CachedStatement() {
    statement_.tryReset();  // else it would hold a read lock
    statement_.clearBindings();
  }
  CachedStatement(const CachedStatement&) = delete;
  CachedStatement& operator=(const CachedStatement&) = delete;
  SQLite::Statement* operator->() const { return &statement_; }
  SQLite::Statement& operator*() const { return statement_; }

 private:
  SQLite::Statement& statement_;
};

// Returns the error for a file that could not be opened.
absl::Status OpenError(const std::filesystem::path& path, const SQLite::Exception& error);
// Returns why no file can be made beside a database, if that is for want of room: SQLite, which
// makes its log and the log's index there, says of that only that the database cannot be opened.
absl::Status CheckRoomBeside(const std::filesystem::path& path);
// Returns the error for the exception that is being handled, which no body should have thrown. Call
// it in a catch block only.
absl::Status StatusOfUnforeseen();

}  // namespace tutti::store
