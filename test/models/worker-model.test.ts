import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startService, Stemwork } from '../cli/stemwork.js'
import { stereoMusic, worstDifference } from '../separation/architecture-run.js'
import { writeWav } from '../separation/tracks.js'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { serviceClient } from './service-client.js'
import { type SharesModel, writeSharesModel } from './shares-model.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const key = 'a key of the operator 1234'
const song = stereoMusic(30_001)

describeWith(
  'stemwork worker --model',
  { postgres: await startPostgres(), redis: await startRedis() },
  ({ postgres, redis }) => {
    const folder = temporaryFolder()
    let model: SharesModel
    const running: Stemwork[] = []
    beforeAll(async () => {
      await writeWav(join(folder, 'song.wav'), song, 44_100)
      model = await writeSharesModel(folder, 'own', { vocals: 0.25, accompaniments: 0.75 })
    })
    afterAll(async () => {
      for (const process of running) {
        process.kill('SIGTERM')
        await process.finished()
      }
      await Promise.all([postgres.release(), redis.release()])
    })

    test('separates what an API node accepted, with the model of the worker', async () => {
      const shared = [
        '--store',
        postgres.url,
        '--queue',
        redis.url,
        '--blobs',
        `file:${join(folder, 'blobs')}`,
        '--model',
        model.manifest,
      ]
      const secrets = { STEMWORK_LINK_SECRET: 'a secret of the tests that is long enough' }
      const { process: api, baseUrl } = await startService(['--api-only', '--api-keys', key, ...shared], secrets)
      running.push(api)
      const worker = new Stemwork(['worker', ...shared], undefined, secrets)
      running.push(worker)
      await worker.printed('stdout', /worker ready/)
      const { job, stems } = await serviceClient(baseUrl, key, folder).separate(
        'service/stems-vocals-accompaniment',
        join(folder, 'song.wav'),
      )
      expect(job.details).toMatchObject({ model: { name: 'own', sha256: model.hash } })
      // Accurate up to the offset of the mixture, which models of this architecture add to each stem.
      const quarter = song.map((plane) => plane.map((sample) => 0.25 * sample))
      expect(worstDifference(stems.vocals!, quarter)).toBeLessThan(1e-3)
    })

    test('starts without a missing model, says so, and leaves its jobs to others', async () => {
      const shared = ['--store', postgres.url, '--queue', redis.url, '--blobs', `file:${folder}`]
      const worker = new Stemwork(['worker', ...shared, '--model', 'kim-vocal-2', '--health-port', '0'])
      running.push(worker)
      const [, address] = await worker.printed('stdout', /health at (\S+)/)
      const health = await fetch(address ?? '')
      expect(health.status).toBe(200)
      expect(await health.json()).toMatchObject({
        warnings: ['service/stems-vocals-accompaniment', 'service/practice'].map((workflow) =>
          expect.stringMatching(`${workflow} is unavailable.*stemwork models pull kim-vocal-2`),
        ),
      })
      const misspelt = new Stemwork(['worker', ...shared, '--model', 'kim-vocal-3'])
      expect(await misspelt.finished()).toMatchObject({ status: 2, stderr: expect.stringContaining('kim-vocal-3') })
    })
  },
)
