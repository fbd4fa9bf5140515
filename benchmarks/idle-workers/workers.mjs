// The idle workers of benchmarks/idle-workers.mjs; reports the number of statements that they have sent. Arguments:
// database, schema, folder of files, number of workers, milliseconds between their starts.
import pg from 'pg'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngine } from '../../dist/index.js'
import { inlineRunner } from '../../dist/testing/index.js'
import { fsBlobs } from '../../dist/adapters/blobs/fs/index.js'
import { postgresQueue, postgresStores } from '../../dist/adapters/postgres.js'
import { nothing } from '../nothing.mjs'

const [connectionString, schema, folder, count, everyMs] = process.argv.slice(2)
const sent = { statements: 0, claims: 0 }
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (config, ...rest) {
  sent.statements++
  if (config?.text?.includes('claimed AS (')) sent.claims++
  return query.call(this, config, ...rest)
}

const options = { connectionString, max: 8 }
/** Pool for the statements of all workers of this process; each worker listens on its own connection. */
const shared = new pg.Pool(options)
const pools = [shared]
const engines = []
for (let index = 0; index < Number(count); index++) {
  const own = new pg.Pool({ ...options, max: 2, idleTimeoutMillis: 1000 })
  pools.push(own)
  const { jobs, applications } = postgresStores({ pool: shared, schema })
  const engine = createEngine({
    jobs,
    applications,
    blobs: fsBlobs({ directory: folder }),
    queue: postgresQueue({ pool: own, schema }),
    workflows: [nothing],
    runner: inlineRunner({ resolve: () => nothing }),
    owner: `worker-${process.pid}-${index}`,
    dispatch: { concurrency: 1 },
  })
  const begun = performance.now()
  await engine.start()
  engines.push(engine)
  await sleep(Math.max(0, Number(everyMs) - (performance.now() - begun)))
}
process.send('ready')
process.on('message', (what) => {
  if (what === 'count') process.send(sent)
  else void stop()
})

async function stop() {
  await Promise.all(engines.map((engine) => engine.close()))
  await Promise.all(pools.map((pool) => pool.end()))
  process.exit()
}
