#include "platform/tracking/rows/tracking_schema.h"

namespace tutti::tracking {

// A series is what one run logged under one key; it holds its last point. `value` is what queries
// compare and order by, null for what is no number; `bits` are the value itself (point_blocks.h).
// blocks holds how many points there are from one of them on to the next block (point_blocks.h).
// job_run, job and settled are RunInfo's: few runs of many are begun by jobs. model_metrics holds
// the last of each metric that a run measured of a model with a data set.
const store::Migrations& AllMigrations() {
  static const auto* migrations = new store::Migrations{R"sql(
    CREATE TABLE experiments (
      id                INTEGER PRIMARY KEY AUTOINCREMENT,
      name              TEXT NOT NULL UNIQUE,
      artifact_location TEXT NOT NULL,
      deleted           INTEGER NOT NULL DEFAULT 0,
      created_ms        INTEGER NOT NULL,
      updated_ms        INTEGER NOT NULL
    );
    INSERT INTO experiments VALUES (0, 'Default', 'mlflow-artifacts:/0', 0,
      CAST(strftime('%s', 'now') AS INTEGER) * 1000, CAST(strftime('%s', 'now') AS INTEGER) * 1000);
    CREATE TABLE experiment_tags (
      experiment INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
      key        TEXT NOT NULL,
      value      TEXT NOT NULL,
      PRIMARY KEY (experiment, key)
    ) WITHOUT ROWID;
    CREATE TABLE runs (
      sequence     INTEGER PRIMARY KEY AUTOINCREMENT,
      id           TEXT NOT NULL UNIQUE,
      experiment   INTEGER NOT NULL REFERENCES experiments (id),
      name         TEXT NOT NULL,
      user         TEXT NOT NULL,
      status       INTEGER NOT NULL,
      start_ms     INTEGER NOT NULL,
      end_ms       INTEGER,
      deleted      INTEGER NOT NULL DEFAULT 0,
      artifact_uri TEXT NOT NULL,
      series_count INTEGER NOT NULL DEFAULT 0,
      param_count  INTEGER NOT NULL DEFAULT 0,
      tag_count    INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX runs_of_experiment ON runs (experiment, deleted, start_ms DESC, id);
    CREATE TABLE params (
      run   INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
      key   TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (run, key)
    ) WITHOUT ROWID;
    CREATE TABLE tags (
      run   INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
      key   TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (run, key)
    ) WITHOUT ROWID;
    CREATE TABLE series (
      id      INTEGER PRIMARY KEY,
      run     INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
      key     TEXT NOT NULL,
      value   REAL,
      bits    INTEGER NOT NULL,
      step    INTEGER NOT NULL,
      time_ms INTEGER NOT NULL,
      UNIQUE (run, key)
    );
    CREATE TABLE points (
      series  INTEGER NOT NULL,
      step    INTEGER NOT NULL,
      time_ms INTEGER NOT NULL,
      bits    INTEGER NOT NULL,
      PRIMARY KEY (series, step, time_ms, bits)
    ) WITHOUT ROWID;
    CREATE TABLE blocks (
      series   INTEGER NOT NULL,
      step     INTEGER NOT NULL,
      time_ms  INTEGER NOT NULL,
      count    INTEGER NOT NULL,
      split_at INTEGER NOT NULL,
      PRIMARY KEY (series, step, time_ms)
    ) WITHOUT ROWID;
    CREATE TABLE datasets (
      id          INTEGER PRIMARY KEY,
      experiment  INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
      name        TEXT NOT NULL,
      digest      TEXT NOT NULL,
      source_type TEXT NOT NULL,
      source      TEXT NOT NULL,
      schema      TEXT NOT NULL,
      profile     TEXT NOT NULL,
      UNIQUE (experiment, name, digest)
    );
    CREATE TABLE models (
      sequence     INTEGER PRIMARY KEY AUTOINCREMENT,
      id           TEXT NOT NULL UNIQUE,
      experiment   INTEGER NOT NULL REFERENCES experiments (id),
      name         TEXT NOT NULL,
      type         TEXT NOT NULL,
      source_run   TEXT NOT NULL,
      status       INTEGER NOT NULL,
      deleted      INTEGER NOT NULL DEFAULT 0,
      created_ms   INTEGER NOT NULL,
      updated_ms   INTEGER NOT NULL,
      artifact_uri TEXT NOT NULL
    );
    CREATE INDEX models_of_experiment ON models (experiment, deleted, created_ms DESC);
    CREATE TABLE model_params (
      model INTEGER NOT NULL REFERENCES models (sequence) ON DELETE CASCADE,
      key   TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (model, key)
    ) WITHOUT ROWID;
    CREATE TABLE model_tags (
      model INTEGER NOT NULL REFERENCES models (sequence) ON DELETE CASCADE,
      key   TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (model, key)
    ) WITHOUT ROWID;
    CREATE TABLE model_metrics (
      model   INTEGER NOT NULL REFERENCES models (sequence) ON DELETE CASCADE,
      key     TEXT NOT NULL,
      run     TEXT NOT NULL,
      dataset_name   TEXT NOT NULL,
      dataset_digest TEXT NOT NULL,
      value   REAL,
      bits    INTEGER NOT NULL,
      step    INTEGER NOT NULL,
      time_ms INTEGER NOT NULL,
      PRIMARY KEY (model, key, run, dataset_name, dataset_digest)
    ) WITHOUT ROWID;
    CREATE TABLE models_of_runs (
      run       INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
      is_output INTEGER NOT NULL,
      model     TEXT NOT NULL,
      step      INTEGER NOT NULL,
      PRIMARY KEY (run, is_output, model)
    ) WITHOUT ROWID;
    CREATE TABLE inputs (
      run     INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
      dataset INTEGER NOT NULL REFERENCES datasets (id),
      tags    TEXT NOT NULL,
      PRIMARY KEY (run, dataset)
    ) WITHOUT ROWID;
  )sql",
                                                        R"sql(
    ALTER TABLE runs ADD COLUMN job_run TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN job TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX runs_of_jobs ON runs (job_run) WHERE job_run != '';
    CREATE INDEX runs_to_settle ON runs (sequence) WHERE job != '' AND settled = 0;
  )sql"};
  return *migrations;
}

}  // namespace tutti::tracking
