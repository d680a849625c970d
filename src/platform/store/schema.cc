#include "platform/store/schema.h"

namespace tutti::store {

const Migrations& AllMigrations() {
  static const auto* migrations = new Migrations{R"sql(
    CREATE TABLE jobs (
      sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
      id         TEXT NOT NULL UNIQUE,
      created_us INTEGER NOT NULL,
      spec       TEXT NOT NULL,
      file_text  TEXT NOT NULL,
      snapshot   TEXT NOT NULL,
      job_token  TEXT NOT NULL,
      warnings   TEXT NOT NULL
    );
    CREATE TABLE events (
      sequence INTEGER PRIMARY KEY AUTOINCREMENT,
      job_id   TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
      time_us  INTEGER NOT NULL,
      state    TEXT NOT NULL,
      reason   TEXT NOT NULL,
      detail   TEXT NOT NULL
    );
    CREATE INDEX events_of_job ON events (job_id, sequence);
    CREATE TABLE launcher_events (
      allocation TEXT NOT NULL,
      node       INTEGER NOT NULL,
      sequence   INTEGER NOT NULL,
      job_id     TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
      line       TEXT NOT NULL,
      PRIMARY KEY (allocation, node, sequence)
    ) WITHOUT ROWID;
    CREATE INDEX launcher_events_of_job ON launcher_events (job_id);
  )sql",
                                                 R"sql(
    ALTER TABLE jobs ADD COLUMN parent   TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN step     TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN step_key TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_of_parent ON jobs (parent) WHERE parent != '';
    CREATE INDEX jobs_of_key ON jobs (step_key) WHERE step_key != '';
  )sql",
                                                 R"sql(
    ALTER TABLE jobs ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
    CREATE UNIQUE INDEX jobs_of_nonce ON jobs (nonce) WHERE nonce != '';
  )sql",
                                                 R"sql(
    CREATE TABLE cordons (
      node    TEXT PRIMARY KEY,
      reason  TEXT NOT NULL,
      time_us INTEGER NOT NULL
    ) WITHOUT ROWID;
  )sql"};
  return *migrations;
}

}  // namespace tutti::store
