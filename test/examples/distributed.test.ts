import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.js'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startS3Server, type S3Server } from '../servers/s3-server.js'
import { root } from './snippets.js'

// Four programs start at once, each with many modules to load.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 })

const apiKey = 'a-key-of-the-compose-file'
const compose = readFileSync(join(root, 'examples/distributed/compose.yaml'), 'utf8')

describeWith(
  'the distributed example',
  { postgres: await startPostgres(), redis: await startRedis() },
  ({ postgres, redis }) => {
    let s3: S3Server
    const running: ChildProcess[] = []
    const log: string[] = []
    beforeAll(async () => {
      s3 = await startS3Server(['media'])
    })
    afterAll(async () => {
      for (const child of running) {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await ended
      }
      await s3.close()
      await Promise.all([postgres.release(), redis.release()])
    })

    /** Starts a program of the deployment with the variables of all nodes; resolves with its first line. */
    async function start(given: string[]): Promise<string> {
      const child = spawn(process.execPath, given, {
        cwd: root,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...process.env,
          STEMWORK_LINK_SECRET: 'a secret of the tests that is long enough',
          AWS_REGION: 'us-east-1',
          AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
          AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
          DATABASE_URL: postgres.url,
          REDIS_URL: redis.url,
          S3_ENDPOINT: s3.url,
          S3_BUCKET: 'media',
        },
      })
      running.push(child)
      child.stderr.on('data', (data: Buffer) => log.push(String(data)))
      const ended = once(child, 'exit').then(() => 'ended')
      return String(await Promise.race([once(child.stdout, 'data'), ended]))
    }

    /** The command of a service in the compose file, with this machine's servers instead of the containers. */
    function commandOf(service: string): string[] {
      const command =
        new RegExp(`^  ${service}:\\n[\\s\\S]*?command: >\\n((?: {6}.*\\n)+)`, 'm').exec(compose)?.[1] ?? ''
      const standIns = {
        'node_modules/.bin/stemwork': join(root, 'dist/cli/main.js'),
        '${API_KEY:?}': apiKey,
        'postgres://stemwork:stemwork@postgres/stemwork': postgres.url,
        'redis://redis:6379': redis.url,
        'http://minio:9000': encodeURIComponent(s3.url),
        '--host 0.0.0.0 --port 8080': '--port 0',
      }
      const text = Object.entries(standIns).reduce((line, [name, standIn]) => line.replace(name, standIn), command)
      return text.trim().split(/\s+/)
    }

    test('its API node and its workers separate songs together, as commands and as worker.mjs', async () => {
      const [api, ...workers] = await Promise.all([
        start(commandOf('api')),
        start(commandOf('worker')),
        start(['examples/worker.mjs']),
      ])
      expect(workers, log.join('')).toEqual([
        expect.stringContaining('worker ready'),
        expect.stringContaining('worker ready'),
      ])
      const client = createClient({ baseUrl: /on (\S+)/.exec(api)?.[1] ?? '', apiKey })
      const song = new Uint8Array(readFileSync(join(root, 'test/fixtures/audio/stereo.mp3')))
      const ids = await Promise.all(
        [1, 2].map(async () => {
          const { downloadUrl } = await client.upload(song)
          return (
            await client.createJob({
              workflow: 'service/stems-vocals-accompaniment',
              params: { inputUrl: downloadUrl },
            })
          ).id
        }),
      )
      for (const id of ids) {
        const job = await client.waitForJob(id)
        expect(job.error, log.join('')).toBeNull()
        const vocals = await (await client.download(job.result?.vocals ?? '')).blob()
        expect(Buffer.from(await vocals.slice(0, 4).arrayBuffer()).toString()).toBe('RIFF')
      }
    })
  },
)
