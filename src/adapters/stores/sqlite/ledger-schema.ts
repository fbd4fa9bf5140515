/** A step of the schema. Sums of days are kept beside the entries, so that a month costs no more than its days. */
export const ledgerSchema = `
  CREATE TABLE ledger (
    id TEXT PRIMARY KEY, app TEXT NOT NULL, workflow TEXT NOT NULL, day INTEGER NOT NULL, ended_at INTEGER NOT NULL,
    entry TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX ledger_by_end ON ledger (ended_at, id);
  CREATE TABLE ledger_days (
    day INTEGER NOT NULL, app TEXT NOT NULL, workflow TEXT NOT NULL, jobs INTEGER NOT NULL, succeeded INTEGER NOT NULL,
    audio_seconds REAL NOT NULL, bytes INTEGER NOT NULL, processor_seconds REAL NOT NULL,
    PRIMARY KEY (day, app, workflow)
  ) WITHOUT ROWID;
  CREATE TRIGGER jobs_settled AFTER UPDATE OF status ON jobs
  WHEN new.status IN ('SUCCEEDED', 'FAILED') AND old.status NOT IN ('SUCCEEDED', 'FAILED')
    AND json_extract(new.record, '$.settlement.id') IS NOT NULL
  BEGIN
    INSERT INTO ledger (id, app, workflow, day, ended_at, entry)
    SELECT json_extract(entry, '$.id'), new.app, new.workflow, json_extract(entry, '$.endedAt') / 86400000,
      json_extract(entry, '$.endedAt'), entry
    FROM (SELECT json_extract(new.record, '$.settlement') AS entry);
    INSERT INTO ledger_days (day, app, workflow, jobs, succeeded, audio_seconds, bytes, processor_seconds)
    SELECT json_extract(entry, '$.endedAt') / 86400000, new.app, new.workflow, 1, new.status = 'SUCCEEDED',
      json_extract(entry, '$.audioSeconds'), json_extract(entry, '$.bytes'), json_extract(entry, '$.processorSeconds')
    FROM (SELECT json_extract(new.record, '$.settlement') AS entry) WHERE true
    ON CONFLICT (day, app, workflow) DO UPDATE SET jobs = jobs + 1, succeeded = succeeded + excluded.succeeded,
      audio_seconds = audio_seconds + excluded.audio_seconds, bytes = bytes + excluded.bytes,
      processor_seconds = processor_seconds + excluded.processor_seconds;
  END;
  `
