import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { hasProgram } from '../servers/found-server.js'
import { databaseOwner } from '../servers/postgres.js'
import { crashRun } from './crash-run.js'

// Long runs, with more jobs and faults, silent connections and Postgres alone, are `npm run bench -- crash`.
const root = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '')
const short = { root, seconds: 6, workers: 3, apiNodes: 2, outageSeconds: 2, settleSeconds: 120, stopsGently: false }
const faults = {
  'worker killed': 2,
  'worker stopped': 1,
  'API node killed': 1,
  'connections cut': 2,
  'connections delayed': 1,
  'Redis flushed': 1,
  'Postgres restarted': 1,
  'S3 away': 1,
} as const

const missing = [
  ...(['initdb', 'postgres'].every(hasProgram) && databaseOwner() ? [] : ['no Postgres to start']),
  ...(['redis-server', 'valkey-server'].some(hasProgram) ? [] : ['no Redis to start']),
]
const unless = missing.length > 0 ? ` (skipped: ${missing.join('; ')})` : ''

test.skipIf(missing.length > 0)(
  `every job ends once, with its files, while nodes of two versions are killed and servers fail${unless}`,
  async () => {
    const report = await crashRun({ ...short, jobs: 40, seed: 7, queue: 'bullmq', beside: 'next', faults })
    expect(report).toMatchObject({
      problems: [],
      wrongAnswers: {},
      submitted: 40,
      terminal: 40,
      acceptedTwice: 0,
      failedWithoutCause: 0,
      revived: 0,
      orphanBlobs: 0,
      wrongResults: 0,
      fieldsLost: 0,
      stuck: 0,
      usesWrong: 0,
      unexpectedExits: [],
      faults,
    })
    expect(report.sharedByVersions).toBeGreaterThan(0)
  },
  300_000,
)
