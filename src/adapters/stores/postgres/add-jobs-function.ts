import { lockApp, queuedJobs } from './create-limits.js'
import { insertJobs } from './job-inserts.js'
import { clockSql } from './job-row.js'
import type { PlannedFunction } from './planned-functions.js'
import { addUsedJobs, readUsage } from './usage.js'

/** Types of the columns of `rest`. */
const figures = ['double precision', 'double precision', 'bigint', 'bigint', 'double precision', 'bigint']
const none = figures.map((type) => `NULL::${type}`).join(', ')

/**
 * Adds jobs of one application, as many of the first as there is room for. Parameters: $1 the application, $2 its jobs,
 * $3 the idempotency key (null: none, else there is one job), $4 how long a key is valid, $5 how many jobs may be
 * queued (null: any number), $6 whether there is a quota, and $7 jobs, $8 seconds and $9 bytes of that (null: any
 * number).
 *
 * The application's lock is held from the count until the commit, so that no other create counts in between; other
 * applications have other locks. A job with a key is added before the lock is taken, counted then, and removed again if
 * there was no room: adding it may have to wait for a host's transaction that holds the same key, and the application's
 * other creates should not.
 *
 * Rows of `outcome, record, claims, id`: `created` for each job that was added, or `found` for the one that holds the
 * key; and one with the outcome `rest`: the room that there was, in all and in the queue alone, the time, and the
 * usage. `isolated` if statements of the transaction do not see all commits before them: nothing was done.
 */
export function addJobs(schema: string): PlannedFunction {
  return {
    name: 'add_jobs',
    parameters: 'text, json, text, bigint, bigint, boolean, double precision, double precision, double precision',
    columns: `text, json, jsonb, text, ${figures.join(', ')}`,
    body: `
    DECLARE
      clock bigint;
      queue_room double precision;
      room double precision;
      used_jobs bigint;
      used_seconds double precision;
      used_bytes bigint;
      holder record;
      other_key text;
      ids text[] := '{}';
      records json[];
    BEGIN
      IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN QUERY SELECT 'isolated', NULL::json, NULL::jsonb, NULL::text, ${none};
        RETURN;
      END IF;
      IF $3 IS NULL AND ($5 IS NOT NULL OR $6) THEN
        PERFORM ${lockApp(schema, '$1')};
      END IF;
      LOOP
        -- Before the key is looked up, so that it never hides a job that was added under this key in between.
        ${findRoom(schema)}
        IF $3 IS NOT NULL THEN
          ${findHolder(schema)}
        END IF;
        EXIT WHEN room < 1;
        ${insertJobs(
          schema,
          { app: '$1', jobs: '$2', limit: 'least(room, 1e9)::bigint' },
          "SELECT coalesce(array_agg(id), '{}'), array_agg(record) INTO ids, records FROM made",
        )};
        EXIT WHEN $3 IS NULL OR ids <> '{}';
        -- Either the id is taken, or another call took the key in between: then the next round finds its job.
        SELECT idempotency_key INTO other_key FROM ${schema}.jobs WHERE id = ($2->0->>'id');
        EXIT WHEN FOUND AND other_key IS DISTINCT FROM $3;
      END LOOP;
      IF $3 IS NOT NULL AND ids <> '{}' AND ($5 IS NOT NULL OR $6) THEN
        PERFORM ${lockApp(schema, '$1')};
        ${findRoom(schema)}
        IF room < 1 THEN
          DELETE FROM ${schema}.jobs WHERE id = ANY(ids);
          ids := '{}'; records := NULL;
        END IF;
      END IF;
      IF $6 AND ids <> '{}' THEN
        ${addUsedJobs(schema, '$1', 'cardinality(ids)')};
      END IF;
      RETURN QUERY SELECT 'created', made.record, NULL::jsonb, made.id, ${none}
        FROM unnest(ids, records) AS made(id, record) WHERE made.id IS NOT NULL;
      RETURN QUERY SELECT 'rest', NULL::json, NULL::jsonb, NULL::text, room, queue_room, clock, used_jobs, used_seconds,
        used_bytes;
    END`,
  }
}

/** Jobs that may be added besides `ids`; null: any number. */
function findRoom(schema: string): string {
  return `
    IF $5 IS NOT NULL THEN
      queue_room := $5 - (${queuedJobs(schema, { app: '$1', except: 'ids', limit: '$5' })});
    END IF;
    room := coalesce(queue_room, 'Infinity');
    IF $6 THEN
      ${readUsage(schema, '$1')} INTO clock, used_jobs, used_seconds, used_bytes;
      room := CASE WHEN used_seconds >= $8 OR used_bytes >= $9 THEN 0 ELSE least(room, $7 - used_jobs) END;
    END IF;`
}

/** Returns the job that holds the key, if that is still valid; else takes the key from it. */
function findHolder(schema: string): string {
  return `
    SELECT id, record, claims, created_at + $4 > ${clockSql} AS is_valid INTO holder
      FROM ${schema}.jobs WHERE app = $1 AND idempotency_key = $3;
    IF FOUND AND holder.is_valid THEN
      RETURN QUERY SELECT 'found', holder.record, holder.claims, holder.id, ${none};
      RETURN;
    ELSIF FOUND THEN
      UPDATE ${schema}.jobs SET idempotency_key = NULL WHERE id = holder.id AND app = $1 AND idempotency_key = $3;
    END IF;`
}
