import { ledgerSchema } from './ledger-schema.js'

/**
 * The steps from an empty file to the current schema; the file's `user_version` says how many are done. Append only.
 *
 * A row has the record as JSON, and columns for searching and ordering. Columns of times are null where the job must
 * not be found, and their indexes hold only jobs that become due at some time.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    app TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    workflow TEXT NOT NULL,
    batch_name TEXT,
    deleted INTEGER NOT NULL,
    idempotency_key TEXT,
    claimable_at INTEGER,
    removable_at INTEGER,
    deliverable_at INTEGER,
    completed_at INTEGER,
    record TEXT NOT NULL
  );
  CREATE INDEX jobs_by_time ON jobs (created_at, id) WHERE deleted = 0;
  CREATE INDEX jobs_by_app ON jobs (app, created_at, id) WHERE deleted = 0;
  CREATE INDEX jobs_by_status ON jobs (status, app, created_at, id) WHERE deleted = 0;
  CREATE UNIQUE INDEX jobs_by_idempotency_key ON jobs (app, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX jobs_claimable ON jobs (claimable_at, created_at, id) WHERE claimable_at IS NOT NULL;
  CREATE INDEX jobs_removable ON jobs (removable_at) WHERE removable_at IS NOT NULL;
  CREATE INDEX jobs_deliverable ON jobs (deliverable_at) WHERE deliverable_at IS NOT NULL;
  CREATE INDEX jobs_ended ON jobs (completed_at) WHERE completed_at IS NOT NULL AND deleted = 0;
  CREATE INDEX jobs_deleted ON jobs (id) WHERE deleted = 1;

  CREATE TABLE job_uploads (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    upload_key TEXT NOT NULL,
    PRIMARY KEY (job_id, upload_key)
  ) WITHOUT ROWID;
  CREATE INDEX job_uploads_by_key ON job_uploads (upload_key, job_id);

  CREATE TABLE applications (id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE TABLE api_keys (id TEXT PRIMARY KEY, app TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX api_keys_by_app ON api_keys (app, created_at, id);
  `,
  // Applications take turns: `turns` holds those with waiting jobs. `served` is 0 until the first turn and rises with
  // each; the rowid orders those at 0.
  `
  CREATE TABLE turns (app TEXT PRIMARY KEY, served INTEGER NOT NULL);
  CREATE INDEX turns_in_order ON turns (served);
  ALTER TABLE jobs ADD COLUMN waiting_since INTEGER;
  ALTER TABLE jobs ADD COLUMN lapses_at INTEGER;
  UPDATE jobs SET waiting_since = claimable_at WHERE status = 'QUEUED';
  UPDATE jobs SET lapses_at = claimable_at WHERE status = 'STARTED';
  DROP INDEX jobs_claimable;
  ALTER TABLE jobs DROP COLUMN claimable_at;
  CREATE INDEX jobs_waiting ON jobs (app, waiting_since, id) WHERE waiting_since IS NOT NULL;
  CREATE INDEX jobs_lapsing ON jobs (lapses_at) WHERE lapses_at IS NOT NULL;
  INSERT INTO turns (app, served) SELECT app, 0 FROM jobs WHERE waiting_since IS NOT NULL GROUP BY app
    ORDER BY min(waiting_since);
  `,
  'CREATE INDEX jobs_with_results ON jobs (app) WHERE removable_at IS NOT NULL',
  `
  CREATE TABLE deployment (id TEXT NOT NULL, pass INTEGER NOT NULL, pass_at INTEGER);
  INSERT INTO deployment (id, pass) VALUES (lower(hex(randomblob(16))), 0);
  `,
  // For lists by each combination of an application's filters: each of them holds the jobs in the order of the list.
  `
  CREATE INDEX jobs_by_workflow ON jobs (app, workflow, status, created_at, id) WHERE deleted = 0;
  CREATE INDEX jobs_by_batch ON jobs (app, batch_name, status, created_at, id) WHERE deleted = 0
    AND batch_name IS NOT NULL;
  `,
  // `rank` is the priority, negated: what comes first is a range of the index.
  `
  ALTER TABLE jobs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN deadline INTEGER;
  DROP INDEX jobs_waiting;
  CREATE INDEX jobs_waiting ON jobs (app, rank, waiting_since, id, workflow) WHERE waiting_since IS NOT NULL;
  CREATE INDEX jobs_overdue ON jobs (deadline) WHERE deadline IS NOT NULL AND waiting_since IS NOT NULL;
  CREATE TABLE rules (kind TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, max_running INTEGER, 
    PRIMARY KEY (kind, id));
  `,
  // The bytes of an application's results are a sum over an index, however many results there are.
  `
  ALTER TABLE jobs ADD COLUMN result_bytes INTEGER;
  UPDATE jobs SET result_bytes = (SELECT coalesce(sum(json_extract(output.value, '$.bytes')), 0)
    FROM json_each(jobs.record, '$.outputs') AS output WHERE json_extract(output.value, '$.copied') IS NOT 1)
  WHERE removable_at IS NOT NULL AND json_valid(record);
  DROP INDEX jobs_with_results;
  CREATE INDEX jobs_with_results ON jobs (app, result_bytes) WHERE result_bytes IS NOT NULL;
  `,
  // `pool`: labels that the job's worker must have.
  `
  ALTER TABLE jobs ADD COLUMN pool TEXT NOT NULL DEFAULT '';
  DROP INDEX jobs_waiting;
  CREATE INDEX jobs_waiting ON jobs (app, rank, waiting_since, id, workflow, pool) WHERE waiting_since IS NOT NULL;
  CREATE INDEX jobs_backlog ON jobs (workflow, pool, waiting_since) WHERE waiting_since IS NOT NULL;
  CREATE TABLE documents (
    kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL, due_at INTEGER,
      expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
  ) WITHOUT ROWID;
  CREATE INDEX documents_due ON documents (kind, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX documents_expired ON documents (expires_at);
  CREATE TABLE usage (
    app TEXT NOT NULL, day INTEGER NOT NULL, jobs INTEGER NOT NULL, audio_seconds REAL NOT NULL, bytes INTEGER NOT NULL,
      PRIMARY KEY (app, day)
  ) WITHOUT ROWID;
  CREATE INDEX usage_by_day ON usage (day);
  `,
  // For lists by the time at which jobs ended.
  `
  CREATE INDEX jobs_by_end ON jobs (app, status, completed_at, created_at, id)
    WHERE deleted = 0 AND completed_at IS NOT NULL;
  `,
  // For the webhook messages of each application.
  `
  DROP INDEX jobs_deliverable;
  CREATE INDEX jobs_deliverable ON jobs (app, deliverable_at, id) WHERE deliverable_at IS NOT NULL;
  `,
  ledgerSchema,
  // The searched text, folded; in the index, so that it is read without the rows. `fillSearch` fills it.
  `
  ALTER TABLE jobs ADD COLUMN search TEXT;
  DROP INDEX jobs_by_app;
  CREATE INDEX jobs_by_app ON jobs (app, created_at, id, search) WHERE deleted = 0;
  CREATE INDEX jobs_unfolded ON jobs (id) WHERE search IS NULL;
  `,
  // Bytes of an application's records: a stored sum, as reading all records would block the event loop.
  `
  ALTER TABLE jobs ADD COLUMN record_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE jobs SET record_bytes = length(record);
  CREATE TABLE kept_records (app TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
  INSERT INTO kept_records (app, bytes) SELECT app, sum(record_bytes) FROM jobs WHERE deleted = 0 GROUP BY app;
  CREATE TRIGGER jobs_kept AFTER INSERT ON jobs WHEN new.deleted = 0
  BEGIN
    INSERT INTO kept_records (app, bytes) VALUES (new.app, new.record_bytes)
    ON CONFLICT (app) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER jobs_hidden AFTER UPDATE OF deleted ON jobs WHEN new.deleted = 1 AND old.deleted = 0
  BEGIN
    UPDATE kept_records SET bytes = bytes - old.record_bytes WHERE app = old.app;
  END;
  CREATE TRIGGER jobs_forgotten AFTER DELETE ON jobs WHEN old.deleted = 0
  BEGIN
    UPDATE kept_records SET bytes = bytes - old.record_bytes WHERE app = old.app;
  END;
  `,
  // Jobs that exist and have no rows yet; see `BatchIntake`.
  'CREATE TABLE intake (id INTEGER PRIMARY KEY, app TEXT NOT NULL, jobs TEXT NOT NULL)',
  // Bytes of an application's results: a stored sum, too.
  `
  ALTER TABLE kept_records ADD COLUMN result_bytes INTEGER NOT NULL DEFAULT 0;
  INSERT INTO kept_records (app, bytes, result_bytes)
  SELECT app, 0, sum(result_bytes) FROM jobs WHERE result_bytes IS NOT NULL GROUP BY app
  ON CONFLICT (app) DO UPDATE SET result_bytes = excluded.result_bytes;
  DROP INDEX jobs_with_results;
  CREATE TRIGGER results_made AFTER INSERT ON jobs WHEN new.result_bytes IS NOT NULL
  BEGIN
    INSERT INTO kept_records (app, bytes, result_bytes) VALUES (new.app, 0, new.result_bytes)
    ON CONFLICT (app) DO UPDATE SET result_bytes = result_bytes + excluded.result_bytes;
  END;
  CREATE TRIGGER results_changed AFTER UPDATE OF result_bytes ON jobs WHEN new.result_bytes IS NOT old.result_bytes
  BEGIN
    UPDATE kept_records SET result_bytes = result_bytes + coalesce(new.result_bytes, 0) - coalesce(old.result_bytes, 0)
    WHERE app = new.app;
  END;
  CREATE TRIGGER results_forgotten AFTER DELETE ON jobs WHEN old.result_bytes IS NOT NULL
  BEGIN
    UPDATE kept_records SET result_bytes = result_bytes - old.result_bytes WHERE app = old.app;
  END;
  `,
]
