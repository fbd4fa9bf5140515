import { endsLedgerStatements, ledgerStatements, quickLedgerStatements, settleStatement } from './postgres-ledger.js'
import { invalidOptions } from '../../../core/engine/errors.js'
import { lockSchema } from './advisory-locks.js'
import { addJobs } from './add-jobs-function.js'
import { claimNext } from './claim-function.js'
import { leaseBucketMs } from './job-row.js'
import { claimedEnds } from './job-updates.js'
import { createFunctions } from './planned-functions.js'
import { queueInTurn } from './scheduling-rules.js'
import { type PostgresClient, query, type PostgresPool, transaction } from './database.js'

/** A step from one form of the tables to the next. */
export interface MigrationStep {
  statements(schema: string): string[]
  /**
   * Whether nodes that do not know the step may run beside those that do: it adds only what they need not write. So a
   * deployment can be updated node by node, and an old one that restarts meanwhile is not refused.
   */
  isAdditive?: boolean
}

/**
 * The tables, in steps that are applied once and never changed afterwards. Text is compared by bytes (`COLLATE "C"`):
 * ids sort as they do in JavaScript, and the order does not change with the server's locale.
 */
export const steps: MigrationStep[] = [
  {
    statements: (schema) => [
      // `record` is json, not jsonb: jsonb refuses the character U+0000, which clients may send. Every other column is
      // derived from it, for searching; `waiting_since`, `ended_at`, `removable_at` and `deliverable_at` are null where
      // they do not apply.
      `CREATE TABLE ${schema}.jobs (
      id text COLLATE "C" PRIMARY KEY,
      version integer NOT NULL,
      app text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      deleted boolean NOT NULL,
      workflow text COLLATE "C" NOT NULL,
      batch_name text COLLATE "C",
      upload_keys text[] COLLATE "C",
      idempotency_key text COLLATE "C",
      created_at bigint NOT NULL,
      waiting_since bigint,
      lease_until bigint,
      ended_at bigint,
      removable_at bigint,
      deliverable_at bigint,
      record json NOT NULL
    ) WITH (fillfactor = 85)`,
      `CREATE INDEX jobs_by_app ON ${schema}.jobs (app, status, created_at DESC, id DESC) WHERE NOT deleted`,
      `CREATE INDEX jobs_by_age ON ${schema}.jobs (created_at DESC, id DESC) WHERE NOT deleted`,
      `CREATE INDEX jobs_by_batch ON ${schema}.jobs (app, batch_name, created_at DESC, id DESC) WHERE NOT deleted ` +
        'AND batch_name IS NOT NULL',
      `CREATE INDEX jobs_by_upload ON ${schema}.jobs USING gin (upload_keys) WHERE upload_keys IS NOT NULL`,
      `CREATE UNIQUE INDEX jobs_by_idempotency_key ON ${schema}.jobs (app, idempotency_key) WHERE idempotency_key ` +
        'IS NOT NULL',
      `CREATE INDEX jobs_waiting ON ${schema}.jobs (waiting_since, id) WHERE waiting_since IS NOT NULL`,
      // Without `lease_until`, so that a heartbeat changes no index; as many rows as there are running jobs.
      `CREATE INDEX jobs_running ON ${schema}.jobs (id) WHERE status = 'STARTED' AND NOT deleted`,
      `CREATE INDEX jobs_ended ON ${schema}.jobs (ended_at) WHERE ended_at IS NOT NULL`,
      `CREATE INDEX jobs_removable ON ${schema}.jobs (removable_at) WHERE removable_at IS NOT NULL`,
      `CREATE INDEX jobs_deliverable ON ${schema}.jobs (deliverable_at) WHERE deliverable_at IS NOT NULL`,
      `CREATE INDEX jobs_deleted ON ${schema}.jobs (id) WHERE deleted`,
      // How many visible jobs there are is the sum of `delta`: writers only add rows, so they never wait for each
      // other.
      `CREATE TABLE ${schema}.job_counts (app text COLLATE "C" NOT NULL, status text COLLATE "C" NOT NULL, delta ` +
        'bigint NOT NULL)',
      `CREATE INDEX job_counts_by_app ON ${schema}.job_counts (app, status) INCLUDE (delta)`,
      `CREATE TABLE ${schema}.applications (id text COLLATE "C" PRIMARY KEY, created_at bigint NOT NULL, record ` +
        'json NOT NULL)',
      `CREATE TABLE ${schema}.api_keys (id text COLLATE "C" PRIMARY KEY, app text COLLATE "C" NOT NULL, created_at ` +
        'bigint NOT NULL, record json NOT NULL)',
      `CREATE INDEX api_keys_by_app ON ${schema}.api_keys (app, created_at DESC)`,
    ],
  },
  { statements: (schema) => [`CREATE INDEX jobs_with_results ON ${schema}.jobs (app) WHERE removable_at IS NOT NULL`] },
  {
    statements: (schema) => [
      // A claim only notes itself here, in one statement; whoever reads the record applies it.
      `ALTER TABLE ${schema}.jobs ADD COLUMN claims jsonb`,
      `CREATE INDEX jobs_waiting_by_app ON ${schema}.jobs (app, waiting_since, id) WHERE waiting_since IS NOT NULL`,
      `DROP TABLE ${schema}.job_counts`,
      // Applications with waiting jobs, see turns.ts. Never unique: a create must not wait for a host's open
      // transaction.
      `CREATE TABLE ${schema}.turns (id bigint GENERATED ALWAYS AS IDENTITY, app text COLLATE "C" NOT NULL, served ` +
        'bigint NOT NULL DEFAULT 0)',
      `CREATE INDEX turns_in_order ON ${schema}.turns (served, id)`,
      `CREATE INDEX turns_by_app ON ${schema}.turns (app, id)`,
      `CREATE SEQUENCE ${schema}.turn`,
      `INSERT INTO ${schema}.turns (app) SELECT app FROM ${schema}.jobs WHERE waiting_since IS NOT NULL GROUP BY ` +
        'app ORDER BY min(waiting_since)',
    ],
  },
  {
    statements: (schema) => [
      `CREATE TABLE ${schema}.deployment (id text NOT NULL, pass bigint NOT NULL, pass_at bigint)`,
      `INSERT INTO ${schema}.deployment (id, pass) VALUES (md5(random()::text || clock_timestamp()::text || ` +
        'pg_backend_pid()::text), 0)',
    ],
  },
  {
    // For lists by each combination of an application's filters.
    statements: (schema) => [
      `CREATE INDEX jobs_by_workflow ON ${schema}.jobs (app, workflow, status, created_at DESC, id DESC) WHERE NOT ` +
        'deleted',
      `DROP INDEX ${schema}.jobs_by_batch`,
      `CREATE INDEX jobs_by_batch ON ${schema}.jobs (app, batch_name, status, created_at DESC, id DESC) WHERE NOT ` +
        'deleted AND batch_name IS NOT NULL',
    ],
    isAdditive: true,
  },
  {
    // The end of a lease, so coarse that a heartbeat seldom changes it: the search for lapsed leases passes none of the
    // running jobs, and yet most heartbeats touch no index. The database computes it, so that older nodes need not know
    // it.
    statements: (schema) => [
      `ALTER TABLE ${schema}.jobs ADD COLUMN lease_bucket bigint GENERATED ALWAYS AS (
        CASE WHEN status = 'STARTED' AND NOT deleted THEN coalesce(lease_until, 0) / ${leaseBucketMs} END
      ) STORED`,
      `DROP INDEX ${schema}.jobs_running`,
      // The nonce of the claim, for changes that do not read the record first.
      `ALTER TABLE ${schema}.jobs ADD COLUMN nonce text`,
      // For the order inside an application: the priority, negated, so that what comes first is a range of the index.
      `ALTER TABLE ${schema}.jobs ADD COLUMN rank smallint NOT NULL DEFAULT 0, ADD COLUMN deadline bigint`,
      `DROP INDEX ${schema}.jobs_waiting, ${schema}.jobs_waiting_by_app`,
      `CREATE INDEX jobs_waiting ON ${schema}.jobs (app, workflow, rank, waiting_since, id) WHERE waiting_since IS ` +
        'NOT NULL',
      `CREATE INDEX jobs_overdue ON ${schema}.jobs (deadline) WHERE deadline IS NOT NULL AND waiting_since IS NOT NULL`,
      `CREATE TABLE ${schema}.rules (kind text NOT NULL, id text COLLATE "C" NOT NULL, state text NOT NULL, ` +
        'max_running integer, PRIMARY KEY (kind, id))',
      `CREATE INDEX jobs_running ON ${schema}.jobs (lease_bucket) WHERE lease_bucket IS NOT NULL`,
    ],
    isAdditive: true,
  },
  {
    // The bytes of an application's results are a sum over an index. Null if an older node wrote the row: then see the
    // record.
    statements: (schema) => [
      `ALTER TABLE ${schema}.jobs ADD COLUMN result_bytes bigint`,
      `DROP INDEX ${schema}.jobs_with_results`,
      `CREATE INDEX jobs_with_results ON ${schema}.jobs (app, result_bytes) WHERE removable_at IS NOT NULL`,
    ],
    isAdditive: true,
  },
  {
    statements: (schema) => [
      // Labels that the job's worker must have. Older nodes add none, and claim all.
      `ALTER TABLE ${schema}.jobs ADD COLUMN pool text COLLATE "C" NOT NULL DEFAULT ''`,
      `DROP INDEX ${schema}.jobs_waiting`,
      `CREATE INDEX jobs_waiting ON ${schema}.jobs (app, workflow, pool, rank, waiting_since, id) WHERE ` +
        'waiting_since IS NOT NULL',
      `CREATE INDEX jobs_backlog ON ${schema}.jobs (workflow, pool, waiting_since) WHERE waiting_since IS NOT NULL`,
      `CREATE TABLE ${schema}.documents (kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
        version integer NOT NULL, value json NOT NULL,
        due_at bigint, expires_at bigint NOT NULL, PRIMARY KEY (kind, key)) WITH (fillfactor = 85)`,
      `CREATE INDEX documents_due ON ${schema}.documents (kind, due_at) WHERE due_at IS NOT NULL`,
      `CREATE INDEX documents_expired ON ${schema}.documents (expires_at)`,
      // Usage of applications, by day (since 1970, UTC).
      `CREATE TABLE ${schema}.usage (app text COLLATE "C" NOT NULL, day bigint NOT NULL, jobs bigint NOT NULL,
        audio_seconds double precision NOT NULL,
        bytes bigint NOT NULL, PRIMARY KEY (app, day)) WITH (fillfactor = 85)`,
    ],
    isAdditive: true,
  },
  {
    // For lists by the time at which jobs ended.
    statements: (schema) => [
      `CREATE INDEX jobs_by_end ON ${schema}.jobs (app, status, ended_at, created_at, id)
        WHERE NOT deleted AND ended_at IS NOT NULL`,
    ],
    isAdditive: true,
  },
  {
    // For the webhook messages of each application. Older nodes find them by reading the whole index.
    statements: (schema) => [
      `DROP INDEX ${schema}.jobs_deliverable`,
      `CREATE INDEX jobs_deliverable ON ${schema}.jobs (app, deliverable_at, id) WHERE deliverable_at IS NOT NULL`,
    ],
    isAdditive: true,
  },
  {
    // A turn for each list of an application: the next of a list is found by an index, however many wait in others.
    // Rows of older nodes have none, and stand for all.
    statements: (schema) => [
      `ALTER TABLE ${schema}.turns ADD COLUMN workflow text COLLATE "C", ADD COLUMN pool text COLLATE "C"`,
      `CREATE INDEX turns_by_list ON ${schema}.turns (workflow, pool, served, id)`,
      `DROP INDEX ${schema}.turns_in_order`,
      // A claim numbers the applications that it serves.
      `ALTER SEQUENCE ${schema}.turn INCREMENT BY 1000`,
    ],
    isAdditive: true,
  },
  { statements: ledgerStatements, isAdditive: true },
  {
    // The searched text, folded. Null in rows of older nodes until the first search (`fillSearch`).
    statements: (schema) => [
      `ALTER TABLE ${schema}.jobs ADD COLUMN search text COLLATE "C"`,
      `CREATE INDEX jobs_unfolded ON ${schema}.jobs (app) WHERE search IS NULL`,
      `CREATE INDEX jobs_searched ON ${schema}.jobs (app, (created_at + 0) DESC, id DESC) WHERE NOT deleted`,
    ],
    isAdditive: true,
  },
  { statements: (schema) => [settleStatement(schema)], isAdditive: true },
  { statements: quickLedgerStatements, isAdditive: true },
  {
    // Bytes of records, summed over an index that has a row for each visible job anyway. Null in rows of older nodes.
    statements: (schema) => [
      `ALTER TABLE ${schema}.jobs ADD COLUMN record_bytes integer`,
      `DROP INDEX ${schema}.jobs_searched`,
      `CREATE INDEX jobs_searched ON ${schema}.jobs (app, (created_at + 0) DESC, id DESC) INCLUDE (record_bytes)
        WHERE NOT deleted`,
    ],
    isAdditive: true,
  },
  {
    // One index instead of three, because each claim and each end writes a row of every index. Older nodes sort where
    // they did not before.
    statements: (schema) => [
      `CREATE INDEX jobs_by_list ON ${schema}.jobs (app, status, workflow, created_at DESC, id DESC)
        INCLUDE (record_bytes) WHERE NOT deleted`,
      `DROP INDEX ${schema}.jobs_by_app, ${schema}.jobs_by_workflow, ${schema}.jobs_searched, ${schema}.jobs_by_age`,
      `CREATE INDEX jobs_by_age ON ${schema}.jobs ((created_at + 0) DESC, id DESC) WHERE NOT deleted`,
    ],
    isAdditive: true,
  },
  { statements: endsLedgerStatements, isAdditive: true },
  // For records with half of a surrogate pair.
  { statements: (schema) => [settleStatement(schema)], isAdditive: true },
  // For jobs that end as they are deleted.
  { statements: (schema) => [settleStatement(schema)], isAdditive: true },
]

/** Building an index over many rows takes time. */
const stepTimeoutMs = 60 * 60 * 1000

/** Brings the tables up to date. Nodes that start together wait for the first of them, and find the work done. */
export async function migrate(pool: PostgresPool, schema: string): Promise<void> {
  await transaction(pool, async (client) => {
    const run = (text: string, values?: unknown[]) => query(client, text, values, { timeoutMs: stepTimeoutMs })
    await lockSchema(client, schema, 'migrations', stepTimeoutMs)
    // Checked first: IF NOT EXISTS needs the right to create schemas even where there is nothing to create.
    const [known] = await run('SELECT to_regnamespace($1)::text', [schema])
    if (known?.[0] === null) await run(`CREATE SCHEMA ${schema}`)
    await run(
      `CREATE TABLE IF NOT EXISTS ${schema}.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT ` +
        'NULL DEFAULT now())',
    )
    await addColumnOfSteps(client, schema)
    const [found] = await run(
      'SELECT coalesce(max(number), 0), coalesce(max(number) FILTER (WHERE NOT is_additive), 0) FROM ' +
        `${schema}.migrations`,
    )
    const [applied, needed] = [Number(found?.[0]), Number(found?.[1])]
    if (needed > steps.length)
      throw invalidOptions(
        `The tables in the Postgres schema ${schema} are of a newer version of stemwork (step ${needed}; this ` +
          `version knows ${steps.length}). Start the newer version, or give this one its own schema.`,
      )
    for (const [index, step] of steps.entries()) {
      const number = index + 1
      if (number <= applied) continue
      for (const text of step.statements(schema)) await run(text)
      await run(`INSERT INTO ${schema}.migrations (number, is_additive) VALUES ($1, $2)`, [
        number,
        step.isAdditive === true,
      ])
    }
    await createFunctions(client, schema, [
      claimNext(schema),
      claimedEnds(schema),
      addJobs(schema),
      queueInTurn(schema),
    ])
  })
}

/** The first tables had no such column. Checked first, as ALTER waits for every reader and needs an owner's right. */
async function addColumnOfSteps(client: PostgresClient, schema: string): Promise<void> {
  const [column] = await query(
    client,
    `SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'is_additive' AND NOT attisdropped`,
    [`${schema}.migrations`],
  )
  if (!column)
    await query(client, `ALTER TABLE ${schema}.migrations ADD COLUMN is_additive boolean NOT NULL DEFAULT false`)
}
