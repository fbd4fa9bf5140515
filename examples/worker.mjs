// A worker-only node of a distributed deployment: Postgres has the jobs, Redis wakes the workers, S3 has the files.
// The same without code: stemwork worker --store "$DATABASE_URL" --queue "$REDIS_URL" --blobs s3://media
import { S3Client } from '@aws-sdk/client-s3'
import pg from 'pg'
import { createEngine } from 'stemwork'
import { bullmqQueue } from 'stemwork/bullmq'
import { postgresStores } from 'stemwork/postgres'
import { s3Blobs } from 'stemwork/s3'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const { jobs, applications, migrate } = postgresStores({ pool })
await migrate()
const client = new S3Client({
  endpoint: process.env.S3_ENDPOINT,
  forcePathStyle: process.env.S3_ENDPOINT !== undefined,
})
const engine = createEngine({
  jobs,
  applications,
  queue: bullmqQueue({ connection: process.env.REDIS_URL }),
  blobs: s3Blobs({ client, bucket: process.env.S3_BUCKET }),
})
await engine.start()
console.log('worker ready')

async function stop() {
  await engine.close({ timeoutMs: 10_000 }) // hands running jobs back without losing an attempt
  await pool.end()
}
process.once('SIGTERM', () => void stop())
