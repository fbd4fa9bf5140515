import type { JobRecord } from '../../../core/engine/job/job.js'
import { inOrder, type LedgerEntry, type LedgerTotal } from '../../../core/engine/job/ledger.js'
import { dayMs } from '../../../core/engine/job/quota.js'
import type { Ledger } from '../../../core/engine/ports/job-store.js'
import type { Send } from './database.js'
import { type Columns, columnText, nowSql, readableJson, readableSql } from './job-row.js'

/** Time after a day's end until it is summed: by then, no transaction that ends a job of that day is open any more. */
const summedAfterMs = 60 * 60 * 1000

const sums = 'sum(jobs), sum(succeeded), sum(audio_seconds), sum(bytes), sum(processor_seconds)'
const columns = 'app, workflow, jobs, succeeded, audio_seconds, bytes, processor_seconds'
/** Rows of the ledger as rows of sums. */
const summed = 'app, workflow, count(*), sum(succeeded), sum(audio_seconds), sum(bytes), sum(processor_seconds)'

/**
 * The statement that ends a job also adds its entry, by a trigger of the jobs' table or by itself, and writes no row
 * that others write, too. Past days are summed by `tidy`; the others are added up on request.
 */
export function postgresLedger(schema: string, send: Send): Ledger {
  return {
    async entries({ fromDay, toDay, app, after, limit }) {
      const rows = await send(
        `SELECT entry FROM ${schema}.ledger WHERE ended_at >= $1 AND ended_at < $2 AND ($3::text IS NULL OR app = $3)
          AND (ended_at, id) > ($4, $5) ORDER BY ended_at, id LIMIT $6`,
        [
          fromDay * dayMs,
          (toDay + 1) * dayMs,
          columnText(app ?? null),
          after?.endedAt ?? -1,
          columnText(after?.id ?? ''),
          Math.max(0, limit),
        ],
      )
      return rows.map(([entry]) => JSON.parse(entry ?? 'null') as LedgerEntry)
    },

    async totals({ fromDay, toDay, app }, groupBy) {
      const names = groupBy.map((name) => `${name}, `).join('')
      const group = groupBy.length > 0 ? `GROUP BY ${groupBy.join(', ')}` : 'HAVING count(*) > 0'
      const ofApp = app === undefined ? '' : 'AND app = $5'
      const [row] = await send(`SELECT coalesce(max(day) + 1, 0) FROM ${schema}.ledger_summed`, [])
      // As values, so that the planner knows how few rows the current day has.
      const openFrom = Math.max(fromDay, Number(row?.[0]))
      const range = [fromDay, Math.min(toDay, openFrom - 1), openFrom * dayMs, (toDay + 1) * dayMs]
      const rows = await send(
        `SELECT ${names} ${sums} FROM (
          SELECT day, ${columns} FROM ${schema}.ledger_days WHERE day BETWEEN $1 AND $2 ${ofApp}
          UNION ALL
          SELECT ended_at / ${dayMs} AS day, ${summed} FROM ${schema}.ledger
          WHERE ended_at >= $3 AND ended_at < $4 ${ofApp} GROUP BY 1, app, workflow
        ) AS used ${group}`,
        app === undefined ? range : [...range, columnText(app)],
      )
      return inOrder(rows.map((row) => totalOf(groupBy, row)))
    },

    async tidy({ keepFromDay }) {
      await send(
        `WITH due AS (
          INSERT INTO ${schema}.ledger_summed (day)
          SELECT DISTINCT ended_at / ${dayMs} FROM ${schema}.ledger
          WHERE ended_at < (${nowSql} - ${summedAfterMs}) / ${dayMs} * ${dayMs}
            AND ended_at >= coalesce((SELECT (max(day) + 1) * ${dayMs} FROM ${schema}.ledger_summed), 0)
          ON CONFLICT (day) DO NOTHING RETURNING day
        )
        INSERT INTO ${schema}.ledger_days (day, ${columns})
        SELECT due.day, ${summed}
        FROM due JOIN ${schema}.ledger ON ended_at >= due.day * ${dayMs} AND ended_at < (due.day + 1) * ${dayMs}
        GROUP BY due.day, app, workflow`,
        [],
      )
      const gone = await send(`DELETE FROM ${schema}.ledger WHERE ended_at < $1 RETURNING id`, [keepFromDay * dayMs])
      await send(`DELETE FROM ${schema}.ledger_days WHERE day < $1`, [keepFromDay])
      await send(`DELETE FROM ${schema}.ledger_summed WHERE day < $1`, [keepFromDay])
      return gone.length
    },
  }
}

function totalOf(groupBy: readonly string[], row: readonly (string | null)[]): LedgerTotal {
  const group = Object.fromEntries(groupBy.map((name, i) => [name, name === 'day' ? Number(row[i]) : row[i]]))
  const [jobs = 0, succeeded = 0, audioSeconds = 0, bytes = 0, processorSeconds = 0] = row
    .slice(groupBy.length)
    .map(Number)
  return { ...group, jobs, succeeded, audioSeconds, bytes, processorSeconds }
}

/** A step of the schema. */
export function ledgerStatements(schema: string): string[] {
  return [
    `CREATE TABLE ${schema}.ledger (id text COLLATE "C" PRIMARY KEY, app text COLLATE "C" NOT NULL,
      workflow text COLLATE "C" NOT NULL, ended_at bigint NOT NULL, succeeded integer NOT NULL,
      audio_seconds double precision NOT NULL, bytes bigint NOT NULL, processor_seconds double precision NOT NULL,
      entry json NOT NULL)`,
    `CREATE INDEX ledger_by_end ON ${schema}.ledger (ended_at, id)`,
    `CREATE INDEX ledger_by_app ON ${schema}.ledger (app, ended_at, id)`,
    `CREATE TABLE ${schema}.ledger_summed (day bigint PRIMARY KEY)`,
    `CREATE TABLE ${schema}.ledger_days (day bigint NOT NULL, app text COLLATE "C" NOT NULL,
      workflow text COLLATE "C" NOT NULL, jobs bigint NOT NULL, succeeded bigint NOT NULL,
      audio_seconds double precision NOT NULL, bytes bigint NOT NULL, processor_seconds double precision NOT NULL,
      PRIMARY KEY (day, app, workflow))`,
    settleStatement(schema),
    settledTrigger(schema, 'status'),
  ]
}

/** Setting by which a statement that adds the entries of its jobs itself disables the trigger. */
export const settledSetting = 'stemwork.settled'

/** A step of the schema. Calling the trigger for each job takes a third of the time of ending many. */
export function quickLedgerStatements(schema: string): string[] {
  return [`DROP TRIGGER jobs_settled ON ${schema}.jobs`, settledTrigger(schema, 'status', isUnsettled)]
}

/** A step of the schema: claims write no `ended_at`, so that the condition is not even prepared for them. */
export function endsLedgerStatements(schema: string): string[] {
  return [`DROP TRIGGER jobs_settled ON ${schema}.jobs`, settledTrigger(schema, 'ended_at', isUnsettled)]
}

const isUnsettled = ` AND coalesce(current_setting('${settledSetting}', true), '') = ''`

function settledTrigger(schema: string, column: string, more = ''): string {
  return `CREATE TRIGGER jobs_settled AFTER UPDATE OF ${column} ON ${schema}.jobs FOR EACH ROW
    WHEN (NEW.status IN ('SUCCEEDED', 'FAILED') AND OLD.status NOT IN ('SUCCEEDED', 'FAILED')${more})
    EXECUTE FUNCTION ${schema}.settle()`
}

/** Columns that an ended job adds to the ledger, besides the text of its entry. */
export const ledgerColumns: Columns = {
  entry_id: ['text', ({ id, retries }) => `${columnText(id)}/${retries}`],
  audio_seconds: ['double precision', ({ settlement }) => settlement?.audioSeconds],
  bytes: ['bigint', ({ settlement }) => settlement && Math.round(settlement.bytes)],
  processor_seconds: ['double precision', ({ settlement }) => settlement?.processorSeconds],
}

/** The rest of an INSERT: of each ended job with an entry, from a table with these columns and `entry`. */
export function ledgerRows(table: string): string {
  return `(id, app, workflow, ended_at, succeeded, audio_seconds, bytes, processor_seconds, entry)
    SELECT entry_id, app, workflow, ended_at, (status = 'SUCCEEDED')::integer, audio_seconds, bytes, processor_seconds,
      entry::json
    FROM ${table} WHERE entry IS NOT NULL ON CONFLICT (id) DO NOTHING`
}

export function ledgerText({ settlement }: JobRecord): string | null {
  return settlement ? readableJson(JSON.stringify(settlement)) : null
}

/** The trigger for ends. It reads records as JSON as seldom as possible: that is half of its time. */
export function settleStatement(schema: string): string {
  return String.raw`CREATE OR REPLACE FUNCTION ${schema}.settle() RETURNS trigger LANGUAGE plpgsql AS $body$
    DECLARE
      record json := NEW.record;
      entry json;
    BEGIN
      IF strpos(record::text, '\u0000') > 0 OR strpos(record::text, '\ud') > 0 THEN
        record := ${readableSql('record')};
      END IF;
      entry := record->'settlement';
      IF json_typeof(entry) = 'object' THEN
        INSERT INTO ${schema}.ledger (id, app, workflow, ended_at, succeeded, audio_seconds, bytes,
          processor_seconds, entry)
        VALUES (NEW.id || '/' || (record->>'retries'), NEW.app, NEW.workflow, (entry->>'endedAt')::numeric::bigint,
          (NEW.status = 'SUCCEEDED')::integer, (entry->>'audioSeconds')::double precision,
          (entry->>'bytes')::numeric::bigint, (entry->>'processorSeconds')::double precision, entry)
        ON CONFLICT (id) DO NOTHING;
      END IF;
      RETURN NULL;
    END $body$`
}
