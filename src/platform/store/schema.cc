#include "platform/store/schema.h"

namespace tutti::store {

// job_states holds nothing that events do not say: what lists and a start of the
// service ask for, in narrow rows, so that an event rewrites no job's file.
// kept_logs holds what became of logs that go to a datastore; log_rows.h.
// trials holds of a sweep's trials what their jobs' specs and logs say; trial_rows.h.
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
  )sql",
                                                 R"sql(
    CREATE TABLE job_states (
      job        INTEGER PRIMARY KEY REFERENCES jobs (sequence) ON DELETE CASCADE,
      parent     TEXT NOT NULL,
      state      TEXT NOT NULL,
      last_event INTEGER NOT NULL,
      started_us INTEGER
    );
    INSERT INTO job_states
      SELECT j.sequence, j.parent, e.state, e.sequence,
             (SELECT r.time_us FROM events r WHERE r.job_id = j.id AND r.state = 'Running'
                 AND r.sequence > (SELECT max(q.sequence) FROM events q
                                   WHERE q.job_id = j.id AND q.state = 'Queued')
              ORDER BY r.sequence LIMIT 1)
      FROM jobs j JOIN events e
        ON e.sequence = (SELECT max(l.sequence) FROM events l WHERE l.job_id = j.id);
    CREATE INDEX children_of_job ON job_states (parent, job);
    CREATE INDEX jobs_of_state ON job_states (parent, state, job);
    CREATE INDEX jobs_under_way ON job_states (job)
      WHERE state NOT IN ('Completed', 'Failed', 'Canceled');
    DROP INDEX jobs_of_parent;
  )sql",
                                                 R"sql(
    CREATE TABLE removed_files (
      job     INTEGER NOT NULL REFERENCES jobs (sequence) ON DELETE CASCADE,
      kind    TEXT NOT NULL,
      time_us INTEGER NOT NULL,
      PRIMARY KEY (job, kind)
    ) WITHOUT ROWID;
    )sql",
                                                 R"sql(
    ALTER TABLE cordons ADD COLUMN author TEXT NOT NULL DEFAULT 'user';
  )sql",
                                                 R"sql(
    CREATE TABLE secrets (
      name       TEXT PRIMARY KEY,
      key_id     TEXT NOT NULL,
      sealed     BLOB NOT NULL,
      created_us INTEGER NOT NULL,
      set_us     INTEGER NOT NULL
    ) WITHOUT ROWID;
  )sql",
                                                 R"sql(
    CREATE TABLE deletions (
      job        INTEGER PRIMARY KEY REFERENCES jobs (sequence) ON DELETE CASCADE,
      parent     TEXT NOT NULL,
      state      TEXT NOT NULL,
      last_event INTEGER NOT NULL,
      started_us INTEGER
    );
  )sql",
                                                 R"sql(
    CREATE TABLE trials (
      job    INTEGER PRIMARY KEY REFERENCES jobs (sequence) ON DELETE CASCADE,
      sweep  INTEGER NOT NULL,
      given  TEXT NOT NULL,
      cost   REAL,
      known  INTEGER NOT NULL DEFAULT 0,
      ranked INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO trials (job, sweep, given)
      SELECT t.sequence, p.sequence,
             (SELECT json_group_array(coalesce(json_extract(i.value, '$.literal'), ''))
              FROM (SELECT json_extract(value, '$.name') AS name
                    FROM json_each(p.spec, '$.sweep.parameters') ORDER BY key) AS parameter
              LEFT JOIN json_each(iif(json_valid(t.spec), t.spec, '{}'), '$.inputs') AS i
                ON i.key = parameter.name)
      FROM (SELECT DISTINCT parent FROM job_states WHERE parent != '') AS parents
      JOIN jobs p ON p.id = parents.parent AND iif(json_valid(p.spec),
                                                   json_type(p.spec, '$.sweep'), '') = 'object'
      JOIN job_states s ON s.parent = p.id
      JOIN jobs t ON t.sequence = s.job;
    CREATE INDEX trials_by_cost ON trials (sweep, cost, job) WHERE ranked;
    CREATE INDEX trials_to_read ON trials (job) WHERE NOT known;
  )sql",
                                                 R"sql(
    CREATE TABLE kept_logs (
      job     INTEGER PRIMARY KEY REFERENCES jobs (sequence) ON DELETE CASCADE,
      state   TEXT NOT NULL,
      reason  TEXT NOT NULL,
      time_us INTEGER NOT NULL
    );
    CREATE INDEX logs_to_keep ON kept_logs (job) WHERE state = 'pending';
  )sql"};
  return *migrations;
}

}  // namespace tutti::store
