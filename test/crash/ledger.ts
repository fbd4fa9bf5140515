import type pg from 'pg'
import { nextField } from './other-build.js'

/** An event of a job, recorded by the database itself, independently of the engine. */
export interface LedgerEntry {
  kind: 'made' | 'made with next field' | 'claimed' | 'ended' | 'revived'
  job: string
  /** The process whose claim was granted; empty for other events. */
  pid: number
  at: number
}

/** Makes Postgres record each job that is created, claimed, ended or revived, in the same transaction. */
export async function keepLedger(pool: pg.Pool): Promise<void> {
  await pool.query(`
    CREATE TABLE ledger (kind text NOT NULL, job text NOT NULL, pid int NOT NULL, at bigint NOT NULL);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      now bigint := floor(extract(epoch from clock_timestamp()) * 1000);
      had_ended boolean := TG_OP = 'UPDATE' AND OLD.status IN ('SUCCEEDED', 'FAILED');
    BEGIN
      IF TG_OP = 'INSERT' THEN
        INSERT INTO ledger VALUES (
          CASE WHEN NEW.record ->> '${nextField.name}' IS NULL THEN 'made' ELSE 'made with next field' END,
          NEW.id, 0, now);
      ELSIF NEW.claims IS NOT NULL AND NEW.claims IS DISTINCT FROM OLD.claims THEN
        INSERT INTO ledger VALUES ('claimed', NEW.id, split_part(NEW.claims -> -1 ->> 'owner', ':', 2)::int, now);
      END IF;
      IF had_ended AND NEW.status NOT IN ('SUCCEEDED', 'FAILED') THEN
        INSERT INTO ledger VALUES ('revived', NEW.id, 0, now);
      ELSIF NEW.status IN ('SUCCEEDED', 'FAILED') AND (NOT had_ended
        OR NEW.record ->> 'completedAt' <> OLD.record ->> 'completedAt') THEN
        INSERT INTO ledger VALUES ('ended', NEW.id, 0, now);
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE ON stemwork.jobs FOR EACH ROW EXECUTE FUNCTION note()`)
}

export async function readLedger(pool: pg.Pool): Promise<LedgerEntry[]> {
  const { rows } = await pool.query<{ kind: LedgerEntry['kind']; job: string; pid: number; at: string }>(
    'SELECT kind, job, pid, at FROM ledger ORDER BY at',
  )
  return rows.map((row) => ({ ...row, at: Number(row.at) }))
}
